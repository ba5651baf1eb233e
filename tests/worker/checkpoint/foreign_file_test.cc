// Tests of --init-from with files of other formats: the message says how to convert them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "tests/worker/checkpoint/checkpoint_case.h"
#include "worker/checkpoint/weights_file.h"

namespace syncopate {
namespace {

class ForeignFile : public testing::Test {
 protected:
  std::string error_of(const Graph& graph) const {
    const Snapshot snapshot = counting_snapshot(graph, {}, 0.0F);
    return message_of<UsageError>([&] { load_weights(path_, graph, 7, snapshot); });
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "weights.safetensors";
};

TEST_F(ForeignFile, OfAnotherFormatIsAnsweredWithALineOfPython) {
  struct Case {
    const char* name;
    const char* first;
    const char* python;
  };
  for (const Case& file :
       {Case{"r.pth", "PK\x03\x04rest", "L('"},
        Case{"old.pth", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", "L('"},
        Case{"without_suffix", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", "L('"},
        Case{"newer.pth", "\x80\x04\x95\x0a", "torch.save_file(STATE_DICT, '"},
        Case{"r.npz", "PK\x03\x04rest", "numpy.load('"},
        Case{"r.onnx", "\x08\x08", "MODEL.state_dict()"},
        Case{"s.onnx", "\x08\x08", "syncopate convert "}}) {
    path_ = folder_.path() / file.name;
    write_file(path_, file.first);
    const std::string error = error_of(checkpoint_graph());
    EXPECT_TRUE(
        contains(error, file.python, path_.replace_extension(".safetensors").string() + "'"));
  }
}

TEST_F(ForeignFile, OfKerasIsAnsweredAsTheNetworkNeeds) {
  const Graph resnet = build_network("resnet50-v1", {.sample_shape = {32, 32, 3}, .classes = 10});
  struct Case {
    const char* name;
    const char* bytes;
    const char* of_resnet;
    const char* of_others;
  };
  for (const Case& file :
       {Case{"r.keras", "PK\x03\x04rest", "w in keras.models.load_model('",
             "python3 -c \"import keras; m = keras.models.load_model('"},
        Case{"r.h5", "\x89HDF\r\n\x1a\nrest model_config", "w in keras.models.load_model('",
             "python3 -c \"import keras; m = keras.models.load_model('"},
        Case{"r.weights.h5", "\x89HDF\r\n\x1a\nrest", "keras.applications.ResNet50(weights='",
             "in the program that makes MODEL: MODEL.load_weights('"},
        Case{"notop.h5", "\x89HDF\r\n\x1a\nrest", "notop.h5', include_top=False).weights",
             "MODEL.load_weights('"}}) {
    path_ = folder_.path() / file.name;
    write_file(path_, file.bytes);
    const std::string of_resnet = error_of(resnet);
    EXPECT_TRUE(contains(of_resnet, file.of_resnet));
    const std::string onnx = std::filesystem::path(path_).replace_extension(".onnx").string();
    const std::string of_others = error_of(checkpoint_graph());
    EXPECT_TRUE(contains(of_others, file.of_others,
                         "type syncopate convert " + onnx + " NET.json WEIGHTS.safetensors"));
    EXPECT_FALSE(contains(of_others, "ResNet50"));
  }
}

TEST_F(ForeignFile, WhoseLineWouldReplaceItGetsAnotherName) {
  write_file(path_, "PK\x03\x04rest");
  EXPECT_TRUE(contains(error_of(checkpoint_graph()), "weights.converted.safetensors')"));
}

TEST_F(ForeignFile, ThatIsAPointerOfGitLfsSaysSo) {
  write_file(path_, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  EXPECT_TRUE(contains(error_of(checkpoint_graph()), "git lfs pull"));
}

TEST_F(ForeignFile, IsNoPipe) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  describe_weights(path_);
  EXPECT_EQ(error_of(checkpoint_graph()),
            "--init-from " + path_.string() + ": a pipe or a device; expected a file");
}

}  // namespace
}  // namespace syncopate
