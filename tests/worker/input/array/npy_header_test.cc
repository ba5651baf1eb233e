#include "worker/input/array/npy_file.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/npy_bytes.h"
#include "tests/worker/input/packed_files.h"

namespace syncopate {
namespace {

std::string error_of(const Bytes& file) {
  return message_if_thrown<FileError>(
      [&] { check_npy_size(parse_npy_header(file, "x.npy"), file.size(), "x.npy"); });
}

std::string error_of_text(const std::string& text) {
  return error_of(npy_file_with_text(text, Bytes(6)));
}

// Written by NumPy 2.4 as np.save("x.npy", np.array([[1, 300]], dtype="<u2")).
TEST(NpyHeader, IsReadAsNumPyWritesIt) {
  const std::string text = "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2), }";
  Bytes file = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0x76, 0};
  file.insert(file.end(), text.begin(), text.end());
  file.resize(127, ' ');
  file.insert(file.end(), {'\n', 1, 0, 0x2c, 1});
  const NpyHeader header = parse_npy_header(file, "x.npy");
  EXPECT_EQ(header.type, "u2");
  EXPECT_EQ(header.item_bytes, 2U);
  EXPECT_EQ(header.shape, (Shape{1, 2}));
  EXPECT_EQ(header.data_offset, 128U);
  EXPECT_EQ(check_npy_size(header, file.size(), "x.npy"), 4U);
}

TEST(NpyHeader, OfEveryVersionIsRead) {
  for (const std::uint8_t version : {1, 2, 3}) {
    const Bytes file = npy_bytes("<f4", "(2, 3)", Bytes(24), version);
    const NpyHeader header = parse_npy_header(file, "x.npy");
    EXPECT_EQ(header.shape, (Shape{2, 3}));
    EXPECT_EQ(header.data_offset + 24, file.size());
  }
  Bytes later = npy_bytes("<f4", "(2, 3)", Bytes(24), 4);
  EXPECT_EQ(error_of(later), "x.npy: format version 4.0 at byte 6; expected 1.0, 2.0 or 3.0");
}

TEST(NpyHeader, MayHaveItsKeysInAnyOrderAndTheNumbersOfPython2) {
  const Bytes file =
      npy_file_with_text(R"({"shape":(3L,2L),'fortran_order':False,"descr":"|u1"})", Bytes(6));
  EXPECT_EQ(parse_npy_header(file, "x.npy").shape, (Shape{3, 2}));
}

TEST(NpyHeader, OfAVectorAndOfANumberIsRead) {
  EXPECT_EQ(parse_npy_header(npy_bytes("|u1", "(6,)", Bytes(6)), "x").shape, (Shape{6}));
  EXPECT_EQ(parse_npy_header(npy_bytes("|u1", "()", Bytes(1)), "x").shape, (Shape{}));
}

TEST(NpyHeader, NamesTheConversionOfBigEndianNumbers) {
  EXPECT_EQ(error_of(npy_bytes(">i2", "(3,)", Bytes(6))),
            "x.npy: its numbers are big-endian ('>i2'); convert it: python3 -c \"import numpy as "
            "np; f = 'x.npy'; a = np.load(f); np.save(f, a.astype(a.dtype.newbyteorder('<')))\"");
  EXPECT_EQ(error_of(npy_bytes(">u1", "(6,)", Bytes(6))), "");  // one byte has no order
}

TEST(NpyHeader, NamesTheConversionOfFortranOrder) {
  const std::string text = "{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2), }";
  EXPECT_TRUE(contains(error_of_text(text), "np.save(f, np.ascontiguousarray(a))"));
  // The two orders of a vector are equal.
  EXPECT_EQ(error_of_text("{'descr': '|u1', 'fortran_order': True, 'shape': (6,), }"), "");
}

TEST(NpyHeader, RefusesElementsThatAreNoNumbers) {
  for (const char* descr : {"|O", "<U5", "|S3", "<M8[ns]", "f", "<f04", "<f4x", "<f99", ""}) {
    EXPECT_TRUE(contains(error_of(npy_bytes(descr, "(6,)", Bytes(6))), "expected numbers"))
        << descr;
  }
  EXPECT_TRUE(contains(error_of(npy_bytes("<U5", "(6,)", Bytes(6))),
                       "number the words: python3 -c \"import numpy as np; f = 'x.npy'; a = "
                       "np.load(f); np.save(f, np.unique(a, return_inverse=True)[1])\""));
  const std::string fields = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }";
  EXPECT_TRUE(contains(error_of_text(fields), "a structured array"));
}

TEST(NpyHeader, SaysWhatAnotherFileIs) {
  EXPECT_EQ(error_of(Bytes{}),
            "x.npy: no .npy file at byte 0: it is empty; expected an array as np.save writes it");
  EXPECT_TRUE(contains(error_of(Bytes{'P', 'K', 3, 4}), "it is a ZIP file, such as .npz"));
  EXPECT_TRUE(contains(error_of(Bytes{0x89, 'H', 'D', 'F'}), "it is an HDF5 file"));
  EXPECT_TRUE(contains(error_of(Bytes{0x80, 4, 0x95}), "it is a pickle"));
  EXPECT_TRUE(contains(error_of(Bytes{'a', ',', 'b'}), "it starts with the bytes 61 2c 62"));
}

TEST(NpyHeader, NamesTheByteOfDamagedText) {
  EXPECT_EQ(error_of_text("{'descr': '|u1', 'fortran_order': False, 'shape': (6), }"),
            "x.npy: damaged header of a .npy file at byte 63: expected a comma in the tuple of one "
            "number; save it again");
  for (const char* text : {
           "",
           "{",
           "{}",
           "{'descr'}",
           "{'descr': 1}",
           "{'descr': '|u1}",
           "{'descr': '|u1', 'fortran_order': False}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (6,), 'more': 1}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (6,), 'shape': (6,)}",
           "{'descr': '|u1', 'fortran_order': Maybe, 'shape': (6,)}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': [6]}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (-6,)}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)} x",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (6,",
       }) {
    EXPECT_TRUE(contains(error_of_text(text), "damaged header of a .npy file at byte "))
        << text << ": " << error_of_text(text);
  }
}

TEST(NpyHeader, RefusesShapesWhoseSizeOverflows) {
  EXPECT_EQ(error_of(npy_bytes("<f4", "(4294967296, 4294967296)", Bytes(24))),
            "x.npy: cut short at byte 152: its header announces [4294967296, 4294967296] of "
            "float32, more than 2^64 bytes in all; save it again");
}

TEST(NpyHeader, RefusesBytesAfterTheArray) {
  EXPECT_EQ(error_of(npy_bytes("|u1", "(2, 3)", Bytes(7))),
            "x.npy: goes on after byte 134, where its array [2, 3] of uint8 ends; expected one "
            "array; save it again");
}

TEST(NpyHeader, RefusesALongHeader) {
  const std::string text =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)}" + std::string(20000, ' ');
  EXPECT_TRUE(contains(error_of_text(text), "expected at most 10000"));
}

TEST(NpyHeader, IsRefusedWhenTheFileIsCutAnywhere) {
  const Bytes whole = npy_bytes("<u2", "(2, 3)", Bytes(12, 7));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const std::string message = error_of(cut);
    ASSERT_TRUE(message.starts_with("x.npy: ")) << size << ": " << message;
    ASSERT_TRUE(contains(message, "at byte " + std::to_string(size < 6 ? 0 : size)))
        << size << ": " << message;
  }
}

// A .npy file has no checksum, so a flipped bit of the header is an error or leaves a header that
// announces as many bytes.
TEST(NpyHeader, WithAFlippedBitIsRefusedOrFitsTheFile) {
  const Bytes whole = npy_bytes("<u2", "(2, 3)", Bytes(12, 7));
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * 128; ++bit) {
    Bytes file = whole;
    file[bit / 8] = static_cast<std::uint8_t>(file[bit / 8] ^ (1U << (bit % 8)));
    try {
      const NpyHeader header = parse_npy_header(file, "x.npy");
      EXPECT_EQ(check_npy_size(header, file.size(), "x.npy"), 12U);
    } catch (const FileError& error) {
      ++refused;
      EXPECT_TRUE(std::string(error.what()).starts_with("x.npy: ")) << error.what();
    }
  }
  EXPECT_GT(refused, 8 * 128 - 20);  // '<u2' may become '<i2', '=u2' or '|u2'
}

}  // namespace
}  // namespace syncopate
