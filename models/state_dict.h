// VAEs of other programs: MLPs recognised among the tensors of a PyTorch state_dict.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "models/model_file.h"
#include "models/vae.h"

namespace crais {

/// The tensors of a file. The metadata are those of a safetensors file.
struct StateDict : SafeTensors {
  std::string source;  // path of the file, for messages
  std::string sha256;  // of the file
};

/// Reads a safetensors file or a file of torch.save; the content decides. Throws Error: kNoInput if
/// the file is missing, kData if it is neither or damaged.
StateDict read_state_dict(const ModelFile& file);

/// Facts that a state_dict does not state, or states in unknown names.
struct StateDictOptions {
  /// Linear layers in their order, "fc3,fc4"; if empty, found by inspection. A name may omit its
  /// prefix ("fc3" for "module.fc3") if exactly one layer ends with it.
  std::string decoder_layers;
  /// "fc1,fc21+fc22": the last two are the heads of mean and log-variance. "fc1,fc2": the last
  /// layer gives the mean and then the log-variance. "none": no encoder.
  std::string encoder_layers;
  std::string activation;  // between layers; if empty, "activation" of the metadata
  std::string likelihood;  // if empty, "likelihood" of the metadata, or else bernoulli
  int64_t image_rows = 0;  // 0: images are square
  int64_t image_cols = 0;
};

/// A VAE, and the parts of the state_dict that it comes from.
struct RecognisedVae {
  Vae vae;
  std::vector<std::string> decoder;  // names of layers
  std::vector<std::string> encoder;  // the heads last; empty if there is none
  std::vector<std::string> unused;   // tensors that do not belong to the VAE

  /// Lines of text: layers and their sizes, activation, likelihood, images, unused tensors.
  std::string describe() const;
};

/// Extracts encoder and decoder from a state_dict, as float32. A layer without bias gets a bias of
/// zeros.
///
/// By inspection: layers with a name part such as "decoder", "dec" or "generator" form the decoder,
/// layers with "encoder" or "enc" the encoder. Without such names, the layers in the natural order
/// of their names must divide into an encoder and a decoder in exactly one way. Bernoulli outputs
/// are logits: a sigmoid at the decoder's end belongs to the likelihood, not to the MLP.
///
/// Throws Error: kArgument that lists the layers if the options are incomplete or contradict the
/// file; kData if a tensor is not finite or a bias does not fit its layer.
RecognisedVae vae_from_state_dict(const StateDict& state, const StateDictOptions& options);

}  // namespace crais
