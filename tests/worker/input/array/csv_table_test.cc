#include "worker/input/array/csv_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/csv_case.h"

namespace syncopate {
namespace {

TEST(CsvTable, HasASampleALine) {
  const CsvTable table = read_table("1,2.5,0\n-3,4e1,2\n");
  EXPECT_EQ(table.num_features, 2);
  EXPECT_EQ(table.features, (Features{1, 2.5, -3, 40}));
  EXPECT_EQ(table.targets.labels, (Labels{0, 2}));
  EXPECT_TRUE(table.columns.empty());
}

TEST(CsvTable, MayHaveAHeader) {
  const CsvTable table = read_table("width,height,class\n1,2,0\n");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"width", "height"}));
  EXPECT_EQ(table.targets.labels, (Labels{0}));
}

TEST(CsvTable, GivesCommandsThatUnpackAPackedFile) {
  const auto has = [](std::string_view text, const std::string& command) {
    const std::string error = table_error(text, {}, "z.csv.gz");
    EXPECT_TRUE(contains(error, ": " + command + " > NEW.csv"));
  };
  has("2019,2021,price\n", "zcat 'z.csv.gz' | sed 1d");
  has("# made by a program\n", "zcat 'z.csv.gz' | sed '/^#/d'");
  has("1\t2\n", "zcat 'z.csv.gz' | sed 's/\\t/,/g'");
  has("\xFF\xFE", "zcat 'z.csv.gz' | iconv -f UTF-16 -t UTF-8");
  const CsvTable table = read_table("a,id,label\n1,2,0\n", {}, "z.csv.zst");
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_TRUE(contains(table.notes[0], "zstdcat 'z.csv.zst' | cut -d, -f2 --complement > NEW.csv"));
}

TEST(CsvTable, SaysHowToNumberClassesThatAreWords) {
  EXPECT_EQ(table_error("1,0\n1,versicolor\n"),
            "t.csv, line 2: field 2 is 'versicolor'; expected the number of a class, from 0 on, in "
            "this column or in another: csv:t.csv:COLUMN; number the words: awk -F, -v OFS=, "
            "'NF>1{if(!($2 in n))n[$2]=k++;$2=n[$2]}1' 't.csv' > NEW.csv");
  const TemporaryFolder folder;
  const auto put = [&](const char* name, const std::string& text) {
    const std::string path = (folder.path() / name).string();
    write_file(path, text);
    return path;
  };
  const std::string text = "a,species\r\n1,no\r\n2,\"yes\"\r\n\r\n3,no\r\n";
  const std::string path = put("train.csv", text);
  const std::string error = table_error(text, {}, path);
  const std::string command = command_in(error, "number the words: ", " > NEW.csv");
  EXPECT_EQ(read_table(output_of(command)).targets.labels, (Labels{0, 1, 0})) << command;
  // The files of a folder number the words alike.
  put("test.csv", "a,species\n1,yes\n");
  const std::string both = command_in(table_error(text, {.data = folder.path().string()}, path),
                                      "number the words: ", ", which writes FILE.csv.new");
  output_of(both);
  const std::string test = output_of("cat '" + folder.path().string() + "/test.csv.new'");
  const std::string train = output_of("cat '" + path + ".new'");
  EXPECT_NE(read_table(test).targets.labels[0], read_table(train).targets.labels[0])
      << both << train << test;
  // A comma inside a field would break the command.
  EXPECT_FALSE(contains(table_error("1,\"a,b\"\n"), "awk"));
}

TEST(CsvTable, SaysWhatToDoAboutAFeatureThatIsNoNumber) {
  EXPECT_EQ(table_error("a,sex,label\n1,f,0\n"),
            "t.csv, line 2: field 2 (sex) is 'f'; expected a finite number; leave the column out: "
            "cut -d, -f2 --complement 't.csv' > NEW.csv, or number its words: awk -F, -v OFS=, "
            "'NR>1&&NF>1{if(!($2 in n))n[$2]=k++;$2=n[$2]}1' 't.csv' > NEW.csv");
  EXPECT_EQ(table_error("day,label\n2020-01-01,0\n"),
            "t.csv, line 2: field 1 (day) is '2020-01-01'; expected a finite number; leave the "
            "column out: cut -d, -f1 --complement 't.csv' > NEW.csv");
}

TEST(CsvTable, TakesTrueAndFalseForNumbers) {
  const CsvTable table = read_table("a,b,label\n1,True,False\n2,false,TRUE\n");
  EXPECT_EQ(table.features, (Features{1, 1, 2, 0}));
  EXPECT_EQ(table.targets.labels, (Labels{0, 1}));
}

TEST(CsvTable, MayHaveQuotesBlanksAndOtherEndsOfLines) {
  const CsvTable table = read_table("\xEF\xBB\xBF\"a, b\" ,c\r\n\r\n \"+1\" , 2\r\n3\t,4");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a, b"}));
  EXPECT_EQ(table.features, (Features{1, 3}));
  EXPECT_EQ(table.targets.labels, (Labels{2, 4}));
}

TEST(CsvTable, TakesTwoQuotesInAQuotedFieldForOne) {
  const CsvTable table = read_table("\"a \"\"x\"\" y\",\"\"\"\",label\n\"1\",2,0\n");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a \"x\" y", "\""}));
  EXPECT_EQ(table.features, (Features{1, 2}));
}

TEST(CsvTable, TakesEndsOfLinesInQuotedFields) {
  const CsvTable table = read_table("\"a\nb\",\"c,\r\nd\",label\n1,2,0\n");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a\nb", "c,\r\nd"}));
  EXPECT_EQ(table.features, (Features{1, 2}));
  // Lines are counted as an editor counts them.
  EXPECT_TRUE(
      table_error("\"a\nb\",label\nx,0\n").starts_with("t.csv, line 3: field 1 (a?b) is 'x'"));
}

TEST(CsvTable, MayHaveLinesThatEndWithCarriageReturns) {
  for (const std::string end : {"", "\r"}) {
    const CsvTable table = read_table("a,b,label\r1,2,0\r\r2,3,1" + end);
    EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(table.features, (Features{1, 2, 2, 3}));
    EXPECT_EQ(table.targets.labels, (Labels{0, 1}));
  }
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "1,2\r";
  EXPECT_EQ(read_table(text).targets.size(), 100000);
}

TEST(CsvTable, NamesLinesThatEndWithCarriageReturnsInFrontOfOthers) {
  for (const std::string text :
       {"a,b,label\r1,2,0\n2,3,1\n", "\"a\",b,label\r1,2,0\r\n2,3,1\r\n"}) {
    EXPECT_EQ(table_error(text),
              "t.csv, line 1: some lines end with CR and others with LF; expected one kind of "
              "ends; give all of them LF: tr '\\r' '\\n' < 't.csv' > NEW.csv");
  }
  std::string late;
  for (int i = 0; i < 100000; ++i) late += "1,2\r";
  EXPECT_TRUE(contains(table_error(late + "1,2\n1,2\n"), "some lines end with CR"));
  EXPECT_EQ(read_table("\"a\rb\",label\n1,0\n").columns, (std::vector<std::string>{"a\rb"}));
  EXPECT_EQ(read_table("a,label\r\r\n1,0\r\r\n").targets.labels, (Labels{0}));
}

TEST(CsvTable, GivesCommandsForLinesThatEndWithCarriageReturns) {
  const TemporaryFolder folder;
  const std::string text = "0,1,2,3\r5,6,7,1\r";
  const Bytes bytes = text_bytes(text);
  for (const std::string suffix : {"", ".gz"}) {
    const std::string path = (folder.path() / ("t.csv" + suffix)).string();
    write_file(path, suffix.empty() ? bytes : gzip(bytes));
    const std::string command =
        command_in(table_error(text, {}, path), "if it is a header, remove it: ", " > NEW.csv");
    EXPECT_EQ(output_of(command), "5,6,7,1\n") << command;
  }
  for (const char* wrong : {"a;b\r1;2\r", "a,b,label\r1,x,2\r", "0,1,2,x\r5,6,7,8\r", "a,b\r,2\r",
                            "a,b\r1,x\r", "# a\r1,2\r"}) {
    const std::string error = table_error(wrong, {.label_column = wrong[0] == '0' ? "2" : ""});
    EXPECT_TRUE(contains(error, ": tr '\\r' '\\n' < 't.csv' | "));
  }
  const CsvTable table = read_table("id,label\r1,0\r");
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_TRUE(contains(table.notes[0], "tr '\\r' '\\n' < 't.csv' | cut"));
}

TEST(CsvTable, NamesAnotherEncodingAndHowToConvertIt) {
  using namespace std::string_view_literals;
  const auto expected = [](const std::string& encoding) {
    return "t.csv: expected text in UTF-8 or ASCII, found " + encoding + "; convert it: iconv -f " +
           encoding + " -t UTF-8 't.csv' > NEW.csv";
  };
  EXPECT_EQ(table_error("\xFF\xFE"
                        "1\0,\0"
                        "0\0\n\0"sv),
            expected("UTF-16"));
  EXPECT_EQ(table_error("\xFE\xFF\0"
                        "1\0,\0"
                        "0\0\n"sv),
            expected("UTF-16"));
  EXPECT_EQ(table_error("1\0,\0"
                        "0\0\n\0"sv),
            expected("UTF-16LE"));
  EXPECT_EQ(table_error("\0"
                        "1\0,\0"
                        "0\0\n"sv),
            expected("UTF-16BE"));
  EXPECT_EQ(table_error("\xFF\xFE\0\0"
                        "1\0\0\0"sv),
            expected("UTF-32"));
  EXPECT_TRUE(contains(table_error("PK\3\4sheet"sv), "found bytes that are no text"));
}

TEST(CsvTable, TakesLabelsThatNumPyWroteAsFloats) {
  EXPECT_EQ(read_table("1.0e+00,3.000000000000000000e+00\n").targets.labels, (Labels{3}));
}

TEST(CsvTable, NamesLineAndFieldOfAValueThatIsMissing) {
  EXPECT_EQ(table_error("width,class\n1,0\n\n,1\n"),
            "t.csv, line 4: field 1 (width) is empty; expected a finite number; remove such lines: "
            "awk -F, '$1~/[^ \"\\r]/' 't.csv' > NEW.csv");
  EXPECT_EQ(table_error("1,0\nNA,1\n"),
            "t.csv, line 2: field 1 is 'NA'; expected a finite number; remove such lines: awk -F, "
            "'$1!=\"NA\"' 't.csv' > NEW.csv");
  for (const char* value : {"nan", "inf", "-inf", "1e999", "1.2.3", "0x1", "1 2", "--1", "+-1"}) {
    EXPECT_TRUE(contains(table_error("1,0\n" + std::string(value) + ",1\n"), "line 2: field 1"))
        << value;
  }
  EXPECT_EQ(table_error("1e39,0\n"),
            "t.csv, line 1: field 1 is 1e39; expected a number that float32 can hold");
}

TEST(CsvTable, NamesTheLineOfAnotherNumberOfFields) {
  EXPECT_EQ(table_error("1,2,0\n1,2\n"),
            "t.csv, line 2: 2 fields; expected 3 as in the first line");
  EXPECT_EQ(table_error("1,0\n1,0,\n"), "t.csv, line 2: 3 fields; expected 2 as in the first line");
}

TEST(CsvTable, NamesTheLineOfALabelOutOfRange) {
  for (const char* label : {"-1", "1.5", "100000", "1e30"}) {
    EXPECT_EQ(table_error("1,0\n1," + std::string(label) + "\n"),
              "t.csv, line 2: field 2 is the label " + std::string(label) +
                  "; expected a whole number from 0 to 99999, or numbers as targets: "
                  "csv:t.csv:targets=2");
  }
}

TEST(CsvTable, SaysWhatSeparatesTheFieldsOfAnotherFile) {
  EXPECT_TRUE(contains(table_error("1;2;0\n"), "line 1: no comma, but ';'"));
  EXPECT_TRUE(contains(table_error("1\t2\n"), "no comma, but 'a tab'"));
  EXPECT_TRUE(contains(table_error("1|2\n"), "no comma, but '|'", "sed 's/|/,/g' 't.csv'"));
  EXPECT_TRUE(contains(table_error("\"a\";\"b, c\"\n"), "line 1: no comma, but ';'"));
  EXPECT_TRUE(
      contains(table_error("1,5;2,5\n"), "convert the file: sed 's/,/./g; s/;/,/g' 't.csv'"));
  EXPECT_EQ(read_table("sep=,\n1,0\n").features, (Features{1}));
  EXPECT_TRUE(
      contains(table_error("# made by a program\n1,0\n"), "remove it: sed '/^#/d' 't.csv'"));
  EXPECT_TRUE(contains(table_error("1,5;2\n1\n"), "'5;2'"));
  EXPECT_EQ(table_error("a;b\n1,5;2\n"),
            "t.csv, line 1: no comma, but ';'; expected numbers separated by commas, one of them "
            "the label; convert the file: sed 's/,/./g; s/;/,/g' 't.csv' > NEW.csv");
  EXPECT_TRUE(contains(table_error("hello\n"), "line 1: no comma; expected numbers"));
}

TEST(CsvTable, RefusesDamagedQuotes) {
  EXPECT_EQ(table_error("\"1,0\n"),
            "t.csv, line 1: field 1 starts with a quote and has no second one");
  EXPECT_EQ(table_error("1,\"0\"x\n"), "t.csv, line 1: field 2 goes on after its second quote");
}

TEST(CsvTable, RefusesAFileWithoutSamples) {
  for (const char* text : {"", "\n\r\n", "a,b\n"}) {
    EXPECT_EQ(table_error(text),
              "t.csv: holds no samples; expected a line of numbers for each sample");
  }
}

TEST(CsvTable, RefusesALineWithoutEnd) {
  EXPECT_TRUE(
      contains(table_error(std::string(std::size_t{65} << 20, '1')), "line 1: longer than 64 MB"));
}

TEST(CsvTable, IsTheSameForLinesThatCrossTheChunksOfReading) {
  std::string text;
  Features features;
  for (int i = 0; i < 100000; ++i) {
    text += std::to_string(i) + ",2\n";
    features.push_back(static_cast<float>(i));
  }
  EXPECT_EQ(read_table(text).features, features);
}

TEST(CsvTable, ReportsProgressOfALongFile) {
  std::string text;
  while (text.size() < (std::size_t{40} << 20)) text += std::string(1000, ' ') + "1,1\n";
  std::vector<std::int64_t> reports;
  read_table(text, {.on_progress = [&](std::int64_t bytes) { reports.push_back(bytes); }});
  EXPECT_EQ(reports, (std::vector<std::int64_t>{16 << 20, 32 << 20}));
}

// A text file has no checksum: a cut or a flipped bit is an error that names file and line, or
// leaves whole samples of finite numbers.
TEST(CsvTable, CutOrWithAFlippedBitIsRefusedOrHasWholeSamples) {
  const std::string whole = "a,\"b\",label\r\n1.5,-2,0\r\n\r\n3e2,4,1\n";
  const auto examine = [](const std::string& text) {
    try {
      const CsvTable table = read_table(text);
      EXPECT_GE(table.targets.labels.size(), 1U);
      EXPECT_EQ(table.features.size(),
                table.targets.labels.size() * static_cast<std::size_t>(table.num_features));
    } catch (const FileError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("t.csv")) << error.what();
    }
  };
  for (std::size_t size = 0; size < whole.size(); ++size) examine(whole.substr(0, size));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string text = whole;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    examine(text);
  }
}

}  // namespace
}  // namespace syncopate
