// What `posenc table` says about the table that it wrote.
#ifndef POSENC_CLIENT_CLI_SUMMARY_H_
#define POSENC_CLIENT_CLI_SUMMARY_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "posenc/v1/table.pb.h"

namespace posenc::cli {

// Keeps the first rows of a table's first tensor while its bytes pass by.
class FirstRows {
 public:
  // REQUIRES: header outlives this.
  FirstRows(const v1::TableHeader& header, int rows);

  // The next bytes of the table.
  void Append(std::span<const std::byte> bytes);

  // A line a row: its first and last values, labelled by position where it has one.
  std::string Text() const;

 private:
  const v1::TableHeader& header_;
  size_t row_elements_ = 0;
  size_t wanted_bytes_ = 0;
  std::vector<std::byte> bytes_;
};

// Tensors with dtype and shape, bytes, ids, time and where there is one the attention factor; a
// line each.
std::string TableSummary(const std::string& output, const v1::TableHeader& header,
                         const std::string& content_hash, absl::Duration elapsed);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_SUMMARY_H_
