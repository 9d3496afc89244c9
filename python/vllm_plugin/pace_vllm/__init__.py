"""vLLM workers that read the next weights before generation pauses.

    vllm serve MODEL --worker-extension-cls pace_vllm.NextWeights ...

`pace train` finds the methods when it joins the server (docs/engines.md) and then calls, through
/collective_rpc, `pace_fetch` until every worker is ready, pauses the server, and calls
`pace_install`. Without this class it calls vLLM's own `reload_weights`, which reads the files in
the pause.

A call stops the engine while it runs, so files are read on a thread of their own.
"""

import pathlib
import threading

# Seconds that a call waits for weights that are nearly there.
_PATIENCE = 0.02


class _Reader:
    """Reads the safetensors of one folder into the memory of this machine."""

    def __init__(self, folder):
        self.folder = folder
        self.tensors = []
        self.error = None
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            self._read_files()
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.error = error  # raised where the weights are wanted

    def _read_files(self):
        # pylint: disable=import-outside-toplevel
        import safetensors
        import torch

        pinned = torch.cuda.is_available()
        files = sorted(pathlib.Path(self.folder).glob("*.safetensors"))
        if not files:
            raise FileNotFoundError(f"{self.folder}: has no .safetensors files")
        for path in files:
            with safetensors.safe_open(path, framework="pt") as file:
                for name in file.keys():
                    tensor = file.get_tensor(name)
                    self.tensors.append((name, tensor.pin_memory() if pinned else tensor.clone()))

    def check(self):
        if self.error is not None:
            raise RuntimeError(f"{self.folder}: cannot be read: {self.error}")


class NextWeights:
    """What vLLM adds to its workers."""

    _pace_reader = None

    def pace_fetch(self, folder):
        """Begins to read a folder: "loading", and "ready" once it is read. An earlier one that was
        not installed is dropped. "none" for an empty name, which asks for nothing."""
        if not folder:
            return "none"
        reader = self._pace_reader
        if reader is None or reader.folder != folder or reader.error is not None:
            reader = self._pace_reader = _Reader(folder)
        reader.thread.join(_PATIENCE)
        if reader.thread.is_alive():
            return "loading"
        reader.check()
        return "ready"

    def pace_install(self, folder):
        """Puts the weights of the folder into the model, read ahead or not."""
        if self._pace_reader is None or self._pace_reader.folder != folder:
            self._pace_reader = _Reader(folder)
        reader, self._pace_reader = self._pace_reader, None
        reader.thread.join()
        reader.check()
        self.reload_weights(weights_iterator=iter(reader.tensors))
