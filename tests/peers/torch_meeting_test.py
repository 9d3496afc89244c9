"""Workers of SGLang find the id of NCCL's group in our store, under the key that PyTorch asks for.

The key is PyTorch's own: a backend for "cuda" is registered in NCCL's place, and gets the store that
ProcessGroupNCCL would get.
"""

import datetime
import json
import os
import pathlib
import subprocess
import unittest

import torch.distributed
from torch.distributed import distributed_c10d

TIMEOUT = datetime.timedelta(seconds=30)


class Captured(Exception):
    """Ends the making of a group where its backend would be made."""


def store_of_backend(call):
    """What SGLang's init_custom_process_group does with a call of /init_weights_update_group."""
    stores = []

    def backend(store, _rank, _size, _timeout):
        stores.append(store)
        raise Captured

    if not hasattr(distributed_c10d.Backend, "RECORDER"):
        distributed_c10d.Backend.register_backend("recorder", lambda *a: backend(*a),
                                                  devices=["cuda"])
    url = f"tcp://{call['master_address']}:{call['master_port']}"
    store, rank, size = next(distributed_c10d.rendezvous(
        url, call["rank_offset"], call["world_size"], timeout=TIMEOUT))
    store.set_timeout(TIMEOUT)
    store = torch.distributed.PrefixStore(call["group_name"], store)
    try:
        distributed_c10d._new_process_group_helper(
            size, rank, [], distributed_c10d.Backend("recorder"), store,
            group_name=call["group_name"], backend_options=None, timeout=TIMEOUT)
    except Captured:
        pass
    return stores[0]


class TorchMeetingTest(unittest.TestCase):
    def setUp(self):
        binary = pathlib.Path(os.environ["PACE_BINARY_DIR"]) / "weight_sender"
        self.sender = subprocess.Popen([binary, "meet"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.sender.wait, 60)
        self.addCleanup(self.sender.stdout.close)
        self.addCleanup(self.sender.stdin.close)
        self.call = json.loads(self.sender.stdout.readline())

    def test_the_id_is_found_where_pytorch_looks_for_it(self):
        store = store_of_backend(self.call)
        # ProcessGroupNCCL::broadcastUniqueNCCLID: the number of the communicator, from 0 on; the
        # value is the id's bytes.
        found = store.get("0")
        self.assertEqual(len(found), 128)
        self.assertEqual(found.hex(), self.call["id"])

    def test_the_store_holds_nothing_else_of_the_group(self):
        name = self.call["group_name"]
        store = torch.distributed.TCPStore("127.0.0.1", self.call["master_port"], timeout=TIMEOUT)
        self.assertTrue(store.check([f"{name}/{name}//cuda//0"]))
        self.assertFalse(store.check([f"{name}/0"]))


if __name__ == "__main__":
    unittest.main()
