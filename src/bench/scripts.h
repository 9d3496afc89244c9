// The scripts of the Python peers, which travel inside the program.
#ifndef PACE_BENCH_SCRIPTS_H_
#define PACE_BENCH_SCRIPTS_H_

#include <string_view>

namespace pace {

std::string_view DecodePeerSource();        // decode_peer.py
std::string_view GpuTrainPeerSource();      // gpu_train_peer.py
std::string_view NaiveControllerSource();   // naive_controller.py
std::string_view TransformersPeerSource();  // transformers_peer.py
std::string_view TokenizersPeerSource();    // tokenizers_peer.py
std::string_view TrainPeerSource();         // train_peer.py

}  // namespace pace

#endif  // PACE_BENCH_SCRIPTS_H_
