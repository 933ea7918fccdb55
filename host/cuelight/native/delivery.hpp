// How a lane's dispatches are delivered: by the host, or pushed by the device. Keeps to the rules of docs/push.md.
#ifndef CUELIGHT_DELIVERY_HPP
#define CUELIGHT_DELIVERY_HPP

#include "carrier.hpp"

namespace cuelight {

template <typename Bus>
class Delivery {
  public:
    enum class Mode : uint32_t {
        poll = CUELIGHT_PUSH_MODE_POLL,
        probing = CUELIGHT_PUSH_MODE_PROBING,
        push = CUELIGHT_PUSH_MODE_PUSH,
        falling = CUELIGHT_PUSH_MODE_FALLING,
    };

    void attach(Bus *bus, uint32_t lane, uint32_t seats, uint8_t *port) {
        bus_ = bus;
        push_ = CUELIGHT_PUSH + lane * CUELIGHT_PUSH_STRIDE;
        carrier_.attach(bus, lane, seats, port);
    }

    Mode mode() const { return mode_.load(std::memory_order_relaxed); }
    bool outstanding() const { return carrier_.outstanding(); }
    bool complete() const { return carrier_.complete(); }

    // One round; `fell` if a lane may have fallen, `news` if the device or the lane had any.
    int serve(bool fell, bool *news) {
        if (mode() == Mode::probing || mode() == Mode::falling || (mode() == Mode::push && fell))
            if (const int status = follow(news)) return status;
        if (mode() == Mode::push) carrier_.look(news);
        if (carrier_.complete()) {
            *news = true;
            if (const int status = carrier_.forward()) return status;
        }
        if (mode() != Mode::poll && mode() != Mode::probing) return 0;
        // A lane has two dispatches at most, whatever its device says.
        bool found = true;
        for (unsigned i = 0; found && i < 2; ++i, *news |= found)
            if (const int status = carrier_.deliver(&found)) return status;
        return 0;
    }

    // Now and then: what nothing announces.
    int remind() { return mode() == Mode::poll ? carrier_.remind() : 0; }

    // The lane is sound and has this generation: the device shall probe it. It does not if the lane is not in POLL.
    int probe(uint32_t generation) {
        if (mode() != Mode::poll) return 0;
        if (const int status = bus_->write(push_ + CUELIGHT_PUSH_GENERATION, 4, generation)) return status;
        if (const int status = command(CUELIGHT_PUSH_COMMAND_PROBE)) return status;
        mode_.store(Mode::probing, std::memory_order_relaxed);
        return 0;
    }

    // Leads the lane to POLL; to be called until it is `back`.
    int recall(bool *back) {
        bool news = false;
        if (mode() != Mode::poll) {
            if (const int status = command(CUELIGHT_PUSH_COMMAND_POLL)) return status;
            if (const int status = follow(&news)) return status;
        }
        *back = mode() == Mode::poll;
        return 0;
    }

    int resynchronize() { return carrier_.resynchronize(); }
    void clear() { carrier_.clear(); }

  private:
    // Does what the device's mode asks for.
    int follow(bool *news) {
        uint32_t word;
        if (const int status = bus_->read32(push_ + CUELIGHT_PUSH_STATUS, &word)) return status;
        const Mode now = static_cast<Mode>(word & CUELIGHT_PUSH_STATUS_MODE_MASK);
        const Mode before = mode_.exchange(now, std::memory_order_relaxed);
        *news |= now != before;
        if (now == Mode::poll) return before == Mode::poll ? 0 : carrier_.take_back();
        if (now != Mode::probing || word & CUELIGHT_PUSH_STATUS_NEEDED_MASK) return 0;
        carrier_.leave_to_device();
        mode_.store(Mode::push, std::memory_order_relaxed);
        return command(CUELIGHT_PUSH_COMMAND_PUSH);
    }

    int command(uint32_t value) { return bus_->write(push_ + CUELIGHT_PUSH_COMMAND, 4, value); }

    Bus *bus_ = nullptr;
    uint32_t push_ = 0;
    Carrier<Bus> carrier_;
    std::atomic<Mode> mode_{Mode::poll};
};

}  // namespace cuelight

#endif
