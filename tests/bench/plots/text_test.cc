#include "bench/plots/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace syncopate::bench {
namespace {

TEST(PlainText, HasNoControlCharacters) {
  EXPECT_EQ(plain_text("a\x1b[2J\nb\x7f"), "a?[2J b?");
  EXPECT_EQ(plain_text("\u0085\u00e9"), "?\u00e9");
}

TEST(HtmlText, EscapesMarkup) {
  EXPECT_EQ(html_text("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
}

TEST(CsvField, IsQuotedIfNecessary) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"no\"\n"), "\"say \"\"no\"\"\n\"");
}

TEST(Shortened, CountsCharactersAndNotBytes) {
  EXPECT_EQ(shortened("été", 3), "été");
  EXPECT_EQ(shortened("étés", 3), "ét…");
  EXPECT_EQ(width_of("ét…"), 3U);
}

TEST(Numbers, HaveThreeDigitsAndThousandsSeparators) {
  EXPECT_EQ(short_text(1234567.0), "1,234,567");
  EXPECT_EQ(short_text(173.4), "173");
  EXPECT_EQ(short_text(0.01234), "0.0123");
  EXPECT_EQ(decimal_text(-0.0001, 2), "0.00");
  EXPECT_EQ(decimal_text(-1234.5, 1), "-1,234.5");
  EXPECT_EQ(decimal_text(NAN, 1), "-");
  EXPECT_EQ(percent_text(0.95), "95 %");
  EXPECT_EQ(percent_text(0.9725), "97.25 %");
  EXPECT_EQ(percent_text(1.0), "100 %");
}

TEST(Numbers, OfExactTextHaveTheDigitsThatAUserTyped) {
  EXPECT_EQ(exact_text(0.1), "0.1");
  EXPECT_EQ(exact_text(60.0), "60");
  EXPECT_EQ(exact_text(0.0123456), "0.0123456");
  EXPECT_EQ(exact_text(86400.5), "86400.5");
  EXPECT_EQ(exact_text((0.1 + 0.1 + 0.1) / 3), "0.1") << "the mean over three seeds";
  EXPECT_EQ(exact_text(static_cast<double>(0.1F)), "0.1");
}

TEST(Listed, JoinsWordsWithCommasAndAnd) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"a"}), "a");
  EXPECT_EQ(listed({"a", "b", "c"}), "a, b and c");
}

}  // namespace
}  // namespace syncopate::bench
