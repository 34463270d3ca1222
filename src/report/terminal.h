// What the standard streams are connected to.
#pragma once

#include <string>

namespace crais {

/// Columns of the terminal that stream `descriptor` writes to; 0 where it is none (a file, a pipe).
int terminal_width(int descriptor);

/// What stdout shows lines of at most: its terminal's columns, 0 (no limit) where it is none.
int stdout_width();

/// A paragraph broken between words into lines of at most `width` columns, each ended by a newline;
/// 0: 80 columns.
std::string wrapped(const std::string& text, int width);

}  // namespace crais
