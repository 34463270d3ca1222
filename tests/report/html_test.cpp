#include "report/html.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/npy.h"
#include "report/pictures.h"
#include "report/plot.h"
#include "support/expect_error.h"

namespace crais {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HtmlPage, ShowsMarkupAndNeverObeysIt) {
  const std::string evil = "<script>\"&'</script>";
  const std::string shown = "&lt;script&gt;&quot;&amp;'&lt;/script&gt;";
  HtmlPage page(evil);
  page.lead(evil);
  page.heading(evil);
  page.paragraph(evil);
  page.verbatim(evil);
  page.table(evil, {evil, evil}, {{evil, evil}});
  page.gallery(evil, {{"png", evil, {evil}}});
  page.picture("<svg/>", evil);
  page.begin_fold(evil);
  page.end_fold();
  const std::string text = page.text();
  EXPECT_FALSE(has(text, "<script")) << text;
  size_t count = 0;
  for (size_t i = text.find(shown); i != std::string::npos; i = text.find(shown, i + 1)) ++count;
  // The title twice, four texts, a table's six, a gallery's three, a picture's, a fold's.
  EXPECT_EQ(count, 17U);
}

TEST(HtmlPage, ForbidsRequestsAndScripts) {
  const std::string text = HtmlPage("A page").text();
  EXPECT_TRUE(has(text, "default-src 'none'; style-src 'unsafe-inline'; img-src data:"));
  EXPECT_FALSE(has(text, "http://"));
  EXPECT_FALSE(has(text, "https://"));
}

TEST(HtmlPage, TablesHaveHeadersForReadersWhoListen) {
  HtmlPage page("A page");
  page.table("Errors", {"method", "error"}, {{"ais", "0.10 +- 0.02"}});
  const std::string text = page.text();
  for (const char* part :
       {"<caption>Errors</caption>", "<th scope=\"col\">method</th>", "<th scope=\"row\">ais</th>",
        "<td>0.10 \u00b1 0.02</td>", "tabindex=\"0\""})
    EXPECT_TRUE(has(text, part)) << part;
}

TEST(HtmlPage, RefusesRaggedTables) {
  HtmlPage page("A page");
  expect_error(ErrorKind::kInternal, {"row"}, [&] { page.table("T", {"a"}, {{"1", "2"}}); });
  expect_error(ErrorKind::kInternal, {"row"}, [&] { page.table("T", {"a", "b"}, {{"1"}}); });
}

TEST(HtmlPage, ColumnsOfWordsStandLeft) {
  HtmlPage page("A page");
  page.table("Faults", {"name", "why", "count"}, {{"one", "because of what it once was", "3"}});
  const std::string text = page.text();
  EXPECT_TRUE(has(text, "<th scope=\"col\" class=\"words\">why</th>"));
  EXPECT_TRUE(has(text, "<td class=\"words\">because of what it once was</td><td>3</td>"));
}

TEST(HtmlPage, PicturesAreBase64) {
  // RFC 4648, section 10.
  HtmlPage page("A page");
  for (const char* content : {"f", "fo", "foo", "foob", "fooba", "foobar"})
    page.picture(content, "a picture");
  for (const char* code :
       {",Zg==\"", ",Zm8=\"", ",Zm9v\"", ",Zm9vYg==\"", ",Zm9vYmE=\"", ",Zm9vYmFy\""})
    EXPECT_TRUE(has(page.text(), code)) << code;
}

TEST(Histogram, BinsHoldEveryFiniteValue) {
  std::vector<double> values;
  values.reserve(1002);
  for (int i = 0; i < 1000; ++i) values.push_back(0.001 * i);
  values.push_back(NAN);
  values.push_back(-HUGE_VAL);
  const Bins bins = bins_of(values);
  // Freedman and Diaconis: 2 x 0.5 x 1000^(-1/3) = 0.1.
  ASSERT_EQ(bins.counts.size(), 10U);
  EXPECT_DOUBLE_EQ(bins.low, 0.0);
  EXPECT_NEAR(bins.low + 10 * bins.width, 0.999, 1e-12);
  double sum = 0;
  for (const double count : bins.counts) {
    EXPECT_NEAR(count, 100, 1);
    sum += count;
  }
  EXPECT_EQ(sum, 1000);
}

TEST(Histogram, OfOneValueIsOneBin) {
  const Bins bins = bins_of({2.5, 2.5, 2.5});
  ASSERT_EQ(bins.counts.size(), 1U);
  EXPECT_EQ(bins.counts[0], 3);
  EXPECT_LT(bins.low, 2.5);
  EXPECT_GT(bins.low + bins.width, 2.5);
  EXPECT_TRUE(bins_of({NAN, INFINITY}).counts.empty());
  EXPECT_EQ(bins_of({-1e308, 1e308, 1, 2}).counts.size(), 5U);
}

TEST(Histogram, OutliersDoNotMakeThousandsOfBins) {
  std::vector<double> values(1000, 0.0);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1e-6 * static_cast<double>(i);
  values.push_back(1e6);
  EXPECT_LE(bins_of(values).counts.size(), 60U);
}

TEST(Thumbnails, TakePicturesOfAnyLayout) {
  const at::Tensor data = at::rand({2, 12});
  const at::Tensor grey = thumbnails_of(data, {3, 4});
  ASSERT_EQ(grey.sizes().vec(), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(grey[1][2][3].item<int>(),
            static_cast<int>(std::lround(255 * data[1][11].item<double>())));
  const at::Tensor first = thumbnails_of(data, {3, 2, 2}), last = thumbnails_of(data, {2, 2, 3});
  ASSERT_EQ(first.sizes().vec(), (std::vector<int64_t>{2, 2, 2, 3}));
  ASSERT_EQ(last.sizes().vec(), first.sizes().vec());
  EXPECT_EQ(first[0][0][1][2].item<int>(), grey[0].flatten()[9].item<int>());
  EXPECT_EQ(last[0][0][1][2].item<int>(), grey[0].flatten()[5].item<int>());
  EXPECT_FALSE(thumbnails_of(data, {12}).defined());
  EXPECT_FALSE(thumbnails_of(at::zeros({2, 36}), {36}).defined());
  EXPECT_EQ(thumbnails_of(at::zeros({2, 784}), {784}).sizes(), at::IntArrayRef({2, 28, 28}));
  EXPECT_FALSE(thumbnails_of(data, {2, 3, 2}).defined());
}

TEST(Thumbnails, SpreadOtherRangesAndShrinkLargePictures) {
  const at::Tensor centred = at::tensor({-1.0F, 0.0F, 3.0F, 1.0F}).unsqueeze(0);
  EXPECT_TRUE(at::equal(thumbnails_of(centred, {2, 2}).flatten(),
                        at::tensor({0, 64, 255, 128}, at::kByte)));
  const at::Tensor large = thumbnails_of(at::full({1, 300 * 100}, 0.5F), {300, 100});
  EXPECT_EQ(large.sizes().vec(), (std::vector<int64_t>{1, kThumbnailSide, kThumbnailSide}));
  EXPECT_TRUE((large == 128).all().item<bool>());
}

TEST(Thumbnails, RefuseFilesThatHoldSomethingElse) {
  const auto file = [](const at::Tensor& bytes) { return npy_text(bytes); };
  const at::Tensor good = at::zeros({3, 4, 5}, at::kByte);
  EXPECT_TRUE(at::equal(parse_thumbnails(file(good), 3, "t.npy"), good));
  const auto refuse = [&](const std::string& bytes) {
    expect_error(ErrorKind::kData, {"t.npy"}, [&] { parse_thumbnails(bytes, 3, "t.npy"); });
  };
  refuse(file(good.slice(0, 0, 2)));
  refuse(file(at::zeros({3, 20}, at::kByte)));
  refuse(file(at::zeros({3, 4, 5, 2}, at::kByte)));
  refuse(file(at::zeros({3, 4, 500}, at::kByte)));
  refuse(file(at::zeros({3, 0, 5}, at::kByte)));
  refuse(npy_text(at::ones({3, 1, 1}, at::kDouble)));
  refuse("no array");
}

TEST(Png, HasTheSizeAndTheColours) {
  const std::string grey = png_of(at::zeros({3, 5}, at::kByte));
  const std::string colours = png_of(at::zeros({3, 5, 3}, at::kByte));
  for (const std::string& png : {grey, colours}) {
    ASSERT_GT(png.size(), 33U);
    EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
    EXPECT_EQ(png[19], 5);  // width
    EXPECT_EQ(png[23], 3);  // height
  }
  EXPECT_EQ(grey[25], 0);
  EXPECT_EQ(colours[25], 2);
}

}  // namespace
}  // namespace crais
