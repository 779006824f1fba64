// What the distance of a query from a key adds to their score, in one head of one sequence: a product of the query with a vector of
// the distance and one of the key with another (He et al., 2021), or a number (Raffel et al., 2020).
//
// Rows are computed in bands: from one row to the next, the distances that it meets move by one, so that a band meets few more than
// a row. A strip holds a band's products, or the gradients of its scores, by distance.
//
// Shapes: Q queries and T tokens of the sequence, which meet Q + T - 1 distances; K width of a head, D of a row; L tokens of the
// longest sequence, S = 2 L - 1 distances.

#pragma once
#include "rows.h"

namespace bert_tf::attention {
constexpr int64_t kBand = 16;  // rows; a multiple of kSide

// Inputs, by the distance of a query from a key, from -(L - 1) on; null where there are none.
template <typename T>
struct Distances {
  const T *as_queries, *as_keys;  // [S, D] vectors, before the biases of queries and keys
  const float* numbers;           // [H, S]
  int64_t longest;                // L

  bool given() const { return as_queries || numbers; }
  int64_t count() const { return given() ? 2 * longest - 1 : 0; }
};

// Gradients of one head, summed over sequences. Those of keys' vectors and of numbers are by the distance of a key from a query.
struct DistanceSums {
  static int64_t size(int64_t count, int64_t wide) { return 2 * (kBand + count) * wide + count; }
  DistanceSums(float* from, int64_t count, int64_t wide)
      : as_queries(from + kBand * wide), as_keys(as_queries + (kBand + count) * wide), numbers(as_keys + count * wide) {}
  float *as_queries, *as_keys, *numbers;  // [S, K], after kBand rows that padding adds to; [S, K]; [S]
};

// The distances of one head of one sequence.
class Relative {
 public:
  // Floats of scratch memory.
  static int64_t size(int64_t queries, int64_t keys, int64_t wide) {
    return 4 * height_of(queries + keys - 1) * wide + padded(queries + keys - 1) + kBand * stride_of(keys);
  }

  // `number` of the head; `root` scales queries.
  template <typename T>
  Relative(const Distances<T>& all, const float* of_query, const float* of_key, int64_t number, int64_t queries, int64_t keys,
           int64_t width, int64_t head, float root, Scratch& scratch)
      : queries_(queries), keys_(keys), wide_(padded(head)), head_(head), longest_(all.longest), height_(height_of(queries + keys - 1)),
        stride_(stride_of(keys)), numbers_(nullptr) {
    const int64_t count = queries + keys - 1, first = all.longest - keys, last = first + count - 1, column = number * head;
    strip_ = scratch.take(kBand * stride_);
    if (all.as_queries) {
      as_queries_ = table(all.as_queries + first * width + column, of_query + column, count, width, root, scratch);
      as_keys_ = table(all.as_keys + last * width + column, of_key + column, count, -width, 1.0f, scratch);
    }
    if (all.numbers && count > 0) {  // neither queries nor keys: -1
      numbers_ = scratch.take(count);
      std::reverse_copy(all.numbers + number * all.count() + first, all.numbers + number * all.count() + last + 1, numbers_);
    }
  }

  // Adds to the scores [count, across] of queries from `begin` on; `key` has rows of zeros up to `across`.
  void add(const float* query, const float* key, int64_t begin, int64_t count, int64_t across, float* scores) const {
    if (as_queries_.rows) {
      for (int64_t i = 0; i < count; i += kBand) {
        const Band band = of_queries(begin, i, count);
        product({query + i * wide_, wide_, 1}, as_keys_.columns + kBand + band.first, height_, band.rows, head_, padded(band.across), strip_, stride_, false);
        for (int64_t r = 0; r < band.rows; ++r) EACH(j, keys_) scores[(i + r) * across + j] += strip_[band.start(r, stride_) + j];
      }
      for (int64_t j = 0; j < across; j += kBand) {
        const Band band = of_keys(begin, j, count, across);
        product({key + j * wide_, wide_, 1}, as_queries_.columns + kBand + band.first, height_, band.rows, head_, padded(band.across), strip_, stride_, false);
        for (int64_t i = 0; i < count; i += kSide)
          for (int64_t r = 0; r < band.rows; r += kSide) {
            float square[kSide * kSide];
            transpose_square(strip_ + band.start(r, stride_) + i, stride_ - 1, square, kSide);
            for (int64_t k = 0; k < std::min<int64_t>(kSide, count - i); ++k)
              EACH(l, kSide) scores[(i + k) * across + j + r + l] += square[k * kSide + l];
          }
      }
    }
    if (numbers_)
      for (int64_t i = 0; i < count; ++i) EACH(j, keys_) scores[i * across + j] += numbers_[queries_ - 1 - begin - i + j];
  }

  // Adds to the gradients of queries [count, K] and keys [T, K], and to `sums`, from those of scores [count, across], which have
  // room for whole squares.
  void differentiate(const float* query, const float* key, int64_t begin, int64_t count, int64_t across, float* scores,
                     float* of_query, float* of_key, const DistanceSums& sums) const {
    if (as_queries_.rows) {
      for (int64_t i = 0; i < count; i += kBand) {
        const Band band = of_queries(begin, i, count);
        clear(band);
        for (int64_t r = 0; r < band.rows; ++r)
          std::copy(scores + (i + r) * across, scores + (i + r) * across + keys_, strip_ + band.start(r, stride_));
        product({strip_, stride_, 1}, as_keys_.rows + (kBand + band.first) * wide_, wide_, band.rows, band.across, wide_, of_query + i * wide_, wide_, true);
        float* sum = sums.as_keys + (longest_ - queries_ + band.first) * wide_;
        product({strip_, 1, stride_}, query + i * wide_, wide_, band.across, band.rows, wide_, sum, wide_, true);
      }
      std::fill(scores + count * across, scores + (count + kSide - 1) / kSide * kSide * across, 0.0f);
      for (int64_t j = 0; j < across; j += kBand) {
        const Band band = of_keys(begin, j, count, across);
        clear(band);
        for (int64_t i = 0; i < count; i += kSide)
          for (int64_t r = 0; r < band.rows; r += kSide)
            transpose_square(scores + i * across + j + r, across, strip_ + band.start(r, stride_) + i, stride_ - 1);
        product({strip_, stride_, 1}, as_queries_.rows + (kBand + band.first) * wide_, wide_, band.rows, band.across, wide_, of_key + j * wide_, wide_, true);
        float* sum = sums.as_queries + (longest_ - keys_ + band.first) * wide_;
        product({strip_, 1, stride_}, key + j * wide_, wide_, band.across, band.rows, wide_, sum, wide_, true);
      }
    }
    if (numbers_)
      for (int64_t i = 0; i < count; ++i) EACH(j, keys_) sums.numbers[longest_ - 1 - begin - i + j] += scores[i * across + j];
  }

 private:
  // Vectors in the order in which a band meets them, with kBand rows of zeros on both sides.
  struct Table {
    float *rows = nullptr, *columns = nullptr;  // [height, K], [K, height]
  };

  // Some rows, and the distances that they meet: row r those from rows - 1 - r on.
  struct Band {
    int64_t rows, first, across;  // first distance in the table, which is before it for padding; number of distances
    int64_t start(int64_t row, int64_t stride) const { return row * (stride - 1) + rows - 1; }
  };

  Band of_queries(int64_t begin, int64_t i, int64_t count) const {
    const int64_t rows = std::min(kBand, count - i);
    return {rows, queries_ - begin - i - rows, keys_ + rows - 1};
  }
  Band of_keys(int64_t begin, int64_t j, int64_t count, int64_t across) const {
    const int64_t rows = std::min(kBand, across - j);
    return {rows, begin + keys_ - j - rows, count + rows - 1};
  }
  void clear(const Band& band) const { std::fill(strip_, strip_ + band.rows * stride_, 0.0f); }

  static int64_t height_of(int64_t count) { return padded(count) + 2 * kBand; }
  static int64_t stride_of(int64_t keys) { return padded(std::max<int64_t>(keys, kQueries) + kBand); }

  template <typename T>
  Table table(const T* rows, const float* bias, int64_t count, int64_t step, float scale, Scratch& scratch) const {
    const Table made = {scratch.take(height_ * wide_), scratch.take(height_ * wide_)};
    std::fill(made.rows, made.rows + kBand * wide_, 0.0f);
    load(rows, bias, count, step, head_, scale, made.rows + kBand * wide_);
    std::fill(made.rows + (height_ - kBand) * wide_, made.rows + height_ * wide_, 0.0f);
    transpose(made.rows, height_, wide_, made.columns);
    return made;
  }

  int64_t queries_, keys_, wide_, head_, longest_, height_, stride_;
  Table as_queries_, as_keys_;
  float *numbers_, *strip_;  // [Q + T - 1]; [kBand, stride]
};
}  // namespace bert_tf::attention
