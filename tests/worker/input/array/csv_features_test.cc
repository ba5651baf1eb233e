// The features of a table without labels that a network is asked about.
#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/csv_case.h"
#include "tests/worker/input/array/memory_stream.h"

namespace syncopate {
namespace {

CsvTable predict_from(std::string_view text, std::string_view training_text,
                      const CsvOptions& options = {}) {
  const CsvColumns trained = parse_csv_columns(to_text(read_table(training_text, options).layout));
  MemoryStream stream(text);
  return read_csv_features(stream, "p.csv", trained);
}

TEST(CsvFeatures, AreThoseOfTheTrainingByName) {
  const std::string_view training = ",a,b,label\n0,1,2,0\n";
  const auto features = [&](std::string_view text) {
    return predict_from(text, training).features;
  };
  EXPECT_EQ(features(",a,b,label\n0,5,6,1\n"), (Features{5, 6}));
  EXPECT_EQ(features("a,b\n5,6\n"), (Features{5, 6}));
  EXPECT_EQ(features("b,id,a,label\n6,x,5,cat\n6,,7,\n"), (Features{5, 6, 7, 6}));
  EXPECT_EQ(message_of<UsageError>([&] { features("a,c\n1,2\n"); }),
            "p.csv: expected one column 'b', which the network was trained on, found 0; give a "
            "table with the columns a,b");
  EXPECT_EQ(message_of<FileError>([&] { features("a,b\n1,x\n"); }),
            "p.csv, line 2: field 2 (b) is 'x'; expected a finite number");
}

TEST(CsvFeatures, AreThoseAtThePlacesOfTheTrainingWithoutAHeader) {
  const std::string_view training = "1,0,2\n";
  const CsvOptions second{.label_column = "2"};
  EXPECT_EQ(predict_from("5,9,6\n", training, second).features, (Features{5, 6}));
  EXPECT_EQ(predict_from("5,6\n", training, second).features, (Features{5, 6}));
  EXPECT_EQ(predict_from("a,b,c\n5,cat,6\n", training, second).features, (Features{5, 6}));
  EXPECT_EQ(predict_from("1,2\n", "a,b,y\n1,2,0\n").features, (Features{1, 2}));
  EXPECT_EQ(predict_from("7\n8\n", "1,0\n").features, (Features{7, 8}));
  EXPECT_EQ(message_of<UsageError>([&] { predict_from("1,2,3,4\n", training, second); }),
            "p.csv: found 4 columns; expected the 2 that the network reads, or the 3 of the table "
            "that it was trained on");
}

TEST(CsvFeatures, WithoutAHeaderBeginWithALineOfNumbersAndTheNameOfAClass) {
  for (const std::string training : {"4,0,6,1\n", "a,b,c,label\n4,0,6,1\n"}) {
    EXPECT_EQ(predict_from("1,2,3,cat\n7,8,9,dog\n", training).features,
              (Features{1, 2, 3, 7, 8, 9}))
        << training;
  }
  EXPECT_EQ(predict_from("cat,0,1\n", "1,5,5\n", {.label_column = "1"}).features, (Features{0, 1}));
}

TEST(CsvFeatures, AfterAFirstLineThatMayBeAHeaderOfNumbersAreRefused) {
  const auto refusal = [](std::string_view text, std::string_view training) {
    return message_of<UsageError>([&] { predict_from(text, training); });
  };
  const std::string_view without = "4,0,6,1\n";
  EXPECT_EQ(refusal("\n0,1,2,3\n5,6,7,1\n", without),
            "p.csv: line 2 counts the columns, 0,1,2,3, as a header of numbers does; if it is a "
            "header, remove it: sed 2d 'p.csv' > NEW.csv; if it is a sample, put names before it: "
            "sed '2{h;s/[0-9][0-9]*/c&/g;G}' 'p.csv' > NEW.csv");
  for (const char* text : {"0,1,2\n5,6,7\n", "0,1,2,label\n5,6,7,1\n"}) {
    EXPECT_TRUE(contains(refusal(text, without), "line 1 counts the columns")) << text;
  }
  EXPECT_TRUE(contains(refusal("0\n7\n", "1,0\n"), "line 1 counts the columns"));
  // Names that the network was not trained on would be refused next.
  EXPECT_TRUE(contains(refusal("0,1\n5,6\n", "a,b,label\n1,2,0\n"),
                       "if it is a sample, put the header of the training before it: a,b"));
  EXPECT_TRUE(contains(refusal("0,1,2\n5,6,0\n", "a,b,label\n1,2,0\n"), "before it: a,b,label"));
  EXPECT_TRUE(contains(refusal("400,410,420,430\n" + mixed_rows(false), "1,2,3,4,0\n"),
                       "line 1 differs from all lines below, 400,410,420,430, as a header"));
  EXPECT_EQ(predict_from("c0,c1,c2,c3\n0,1,2,3\n", without).features, (Features{0, 1, 2}));
  // The numbers are those that the network was trained on.
  const std::string_view numbers = "0,1,2,label\n4,5,6,0\n";
  EXPECT_EQ(predict_from("0,1,2\n7,8,9\n", numbers).features, (Features{7, 8, 9}));
  EXPECT_EQ(predict_from("0,1,2,class\n7,8,9,1\n", numbers).features, (Features{7, 8, 9}));
}

}  // namespace
}  // namespace syncopate
