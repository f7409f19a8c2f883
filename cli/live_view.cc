#include "cli/live_view.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "report/live_rates.h"
#include "report/live_table.h"
#include "report/text.h"

namespace ztape::cli {
namespace {

constexpr int64_t kBusyTickNs = 250'000'000;
constexpr int64_t kIdleTickNs = 1'000'000'000;
constexpr int kBusyTicksAfterChange = 12;  // until the rates are down to nothing
constexpr int kLastWordsMs = 500;
const std::string kAway = "\r\x1b[J";  // the table, and what was typed into it

using Lines = std::vector<std::string>;

}  // namespace

struct LiveView::Impl {
  std::unique_ptr<Terminal> terminal;
  std::function<proxy::LiveFacts()> look;
  net::Timer timer;
  net::Wakeup on_log_line;
  net::WindowSignal on_window;
  net::JobSignals on_job;
  report::LiveRates rates;
  HeldLog* log;                    // null: it goes elsewhere
  std::vector<std::string> drawn;  // the table on the screen
  Terminal::Size drawn_size;
  MonotonicTime drawn_at;
  int busy_ticks = kBusyTicksAfterChange;

  Impl(net::Loop& loop, std::unique_ptr<Terminal> on, HeldLog* held, std::function<proxy::LiveFacts()> facts)
      : terminal(std::move(on)),
        look(std::move(facts)),
        timer(loop),
        on_log_line(loop, [this] { tick_soon(); }),
        on_window(loop, [this] { tick_soon(); }),
        on_job(
            loop, [this] { suspend(); }, [this] { draw_anew(); }),
        log(held) {
    timer.let_loop_end();
    on_log_line.let_loop_end();
    if (log) log->hold([this] { on_log_line.wake(); });
    tick();
  }

  ~Impl() { take_away(log ? log->let_go() : Lines()); }

  void tick() {
    const bool changed = draw();
    busy_ticks = changed ? kBusyTicksAfterChange : std::max(0, busy_ticks - 1);
    timer.start(busy_ticks > 0 ? kBusyTickNs : kIdleTickNs, [this] { tick(); });
  }

  void tick_soon() {
    busy_ticks = kBusyTicksAfterChange;
    timer.start(std::max<int64_t>(0, drawn_at.ns + kBusyTickNs - net::monotonic_now().ns), [this] { tick(); });
  }

  // The shell gets a clean terminal; what it writes there meanwhile is not ours to redraw.
  void suspend() {
    take_away(log ? log->take() : Lines());
    raise(SIGSTOP);
    draw_anew();
  }

  void draw_anew() {
    drawn.clear();
    tick_soon();
  }

  void take_away(const Lines& last_lines) {
    if (!terminal->flush_within(kLastWordsMs)) return;
    terminal->write((drawn.empty() ? "" : kAway) + text_of(last_lines));
    terminal->flush_within(kLastWordsMs);
    drawn.clear();
  }

  // The cursor stays at the beginning of the table. So it does not matter what a terminal does to the lines below when
  // its window changes; some break and join them, some cut them off. True where more than the first line has changed,
  // which has the time.
  bool draw() {
    if (!terminal->flush()) return true;  // it has not taken the last one yet
    const auto facts = look();
    rates.add(facts);
    const auto size = terminal->size();
    std::vector<std::string> table;
    if (terminal->in_foreground()) {
      table = report::live_table(facts, rates,
                                 {.columns = size.columns, .rows = size.rows, .color = Terminal::wants_color()});
    }
    const auto lines = text_of(log ? log->take() : Lines());
    if (table == drawn && size == drawn_size && lines.empty()) return false;
    std::string text;
    if (!drawn.empty()) text = lines.empty() ? "\r" : kAway;
    text += lines;
    for (const auto& line : table) {
      text += line;
      // Behind a line that ends in the last column the cursor still stands on that column.
      if (report::styled_width(line) < size.columns) text += "\x1b[K";
      text += '\n';
    }
    if (!table.empty()) {
      text += "\x1b[J\x1b[" + std::to_string(table.size()) + "A";
    } else if (!drawn.empty()) {
      text += "\x1b[J";
    }
    terminal->write(std::move(text));
    drawn_size = size;
    drawn_at = facts.time;
    const bool same_below = table.size() == drawn.size() &&
                            std::equal(table.begin() + !table.empty(), table.end(), drawn.begin() + !drawn.empty());
    drawn = std::move(table);
    return !same_below;
  }

  static std::string text_of(const Lines& lines) {
    std::string all;
    for (const auto& line : lines) all += line + "\n";
    return all;
  }
};

LiveView::LiveView(net::Loop& loop, std::unique_ptr<Terminal> terminal, HeldLog* log,
                   std::function<proxy::LiveFacts()> look)
    : impl_(std::make_unique<Impl>(loop, std::move(terminal), log, std::move(look))) {}

LiveView::~LiveView() = default;

}  // namespace ztape::cli
