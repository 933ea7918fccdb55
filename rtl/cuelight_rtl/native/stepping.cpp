// C ABI that steps a model cycle by cycle, for lockstep with the golden model and for cycle counts.

#include <vector>

#include "model.hpp"

namespace {

using cuelight::Model;
using cuelight::Request;

constexpr uint64_t ns_per_cycle = 10;

struct Commit {
    uint64_t cycle;
    uint32_t port, kind, lane, stage, id, detail;
};

struct Stepper {
    explicit Stepper(uint64_t nonce) : model(nonce) {}

    bool cycle(const Request *request) {
        auto &top = model.top;
        top.time_ns = model.cycles * ns_per_cycle;
        model.settle(request);
        const bool accepted = request && top.req_ready;
        if (top.rsp_valid) answers.push_back(top.rsp_data);
#define CUELIGHT_TAKE(i)                                                                                       \
    if (top.commit_valid_##i)                                                                                  \
        commits.push_back({model.cycles, i, top.commit_kind_##i, top.commit_lane_##i, top.commit_stage_##i,    \
                           top.commit_id_##i, top.commit_detail_##i});
        CUELIGHT_COMMIT_PORTS(CUELIGHT_TAKE)
#undef CUELIGHT_TAKE
        if (accepted) accepted_at = model.cycles;
        model.edge();
        return accepted;
    }

    bool issue(const Request &request, uint64_t limit) {
        for (uint64_t i = 0; i < limit; ++i)
            if (cycle(&request)) return true;
        return false;
    }

    bool ready() {
        model.settle();
        return model.top.req_ready;
    }

    Model model;
    std::vector<Commit> commits;
    std::vector<uint64_t> answers;
    uint64_t accepted_at = 0;
};

Stepper &stepper(void *handle) { return *static_cast<Stepper *>(handle); }

}  // namespace

#define CUELIGHT_EXPORT extern "C" __attribute__((visibility("default")))

CUELIGHT_EXPORT void *cuelight_model_open(uint64_t nonce) { return new Stepper(nonce); }

CUELIGHT_EXPORT void cuelight_model_close(void *handle) { delete &stepper(handle); }

// One cycle with a request, or without where `addr` is negative. Returns whether it was accepted.
CUELIGHT_EXPORT int cuelight_model_cycle(void *handle, int write, int addr, uint64_t data, int strobe) {
    const Request request{write != 0, static_cast<uint16_t>(addr), data, static_cast<uint8_t>(strobe)};
    return stepper(handle).cycle(addr < 0 ? nullptr : &request);
}

// `count` cycles without a request.
CUELIGHT_EXPORT void cuelight_model_cycles(void *handle, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) stepper(handle).cycle(nullptr);
}

// Writes and steps until the effect is complete. Returns 0 when `limit` cycles were not enough.
CUELIGHT_EXPORT int cuelight_model_write(void *handle, int addr, uint64_t data, int strobe, uint64_t limit) {
    auto &at = stepper(handle);
    if (!at.issue({true, static_cast<uint16_t>(addr), data, static_cast<uint8_t>(strobe)}, limit)) return 0;
    for (uint64_t i = 0; !at.ready(); ++i) {
        if (i == limit) return 0;
        at.cycle(nullptr);
    }
    return 1;
}

// Reads 8 bytes. Returns 0 when `limit` cycles were not enough.
CUELIGHT_EXPORT int cuelight_model_read(void *handle, int addr, uint64_t limit, uint64_t *data) {
    auto &at = stepper(handle);
    at.answers.clear();
    if (!at.issue({false, static_cast<uint16_t>(addr), 0, 0}, limit)) return 0;
    for (uint64_t i = 0; at.answers.empty(); ++i) {
        if (i == limit) return 0;
        at.cycle(nullptr);
    }
    *data = at.answers.front();
    return 1;
}

// Steps until nothing will change without a request. Returns 0 when `limit` cycles were not enough.
CUELIGHT_EXPORT int cuelight_model_run(void *handle, uint64_t limit) {
    auto &at = stepper(handle);
    for (uint64_t i = 0;; ++i) {
        at.model.settle();
        if (at.model.top.idle) return 1;
        if (i == limit) return 0;
        at.cycle(nullptr);
    }
}

struct cuelight_model_outputs {
    uint64_t cycles, accepted_at;
    uint32_t poll_valid, idle, ready, irq_retire, irq_reject, irq_trace;
};

CUELIGHT_EXPORT void cuelight_model_outputs(void *handle, cuelight_model_outputs *out) {
    auto &at = stepper(handle);
    at.model.settle();
    const auto &top = at.model.top;
    *out = {at.model.cycles, at.accepted_at, top.poll_valid, top.idle, top.req_ready,
            top.irq_retire,  top.irq_reject, top.irq_trace};
}

// Commits since the last call, in order; they stand until the next call.
CUELIGHT_EXPORT uint64_t cuelight_model_commits(void *handle, void **commits) {
    static_assert(sizeof(Commit) == 32);
    thread_local std::vector<Commit> taken;
    taken.clear();
    taken.swap(stepper(handle).commits);
    *commits = taken.data();
    return taken.size();
}
