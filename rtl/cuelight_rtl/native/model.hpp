// The Verilated scheduler as a bus and a clock. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "Vcuelight.h"
#include "Vcuelight___024root.h"
#include "design.h"

void Vcuelight___024root___eval(Vcuelight___024root *);

namespace cuelight {

struct Request {
    bool write;
    uint16_t addr;
    uint64_t data;
    uint8_t strobe;
};

inline Request read_request(uint32_t addr) { return {false, static_cast<uint16_t>(addr), 0, 0}; }

// A write of the four bytes of a 32-bit register.
inline Request write_request(uint32_t addr, uint32_t value) {
    const unsigned shift = addr & 4;
    return {true, static_cast<uint16_t>(addr & ~7u), uint64_t{value} << 8 * shift, static_cast<uint8_t>(0xf << shift)};
}

class Model {
  public:
    explicit Model(uint64_t nonce) {
        top.boot_nonce = nonce;
        top.eval();
    }

    ~Model() { top.final(); }

    // Lets the outputs follow the inputs, before the clock edge of this cycle. Without a request they show what the
    // device would do if it were left alone.
    void settle(const Request *request = nullptr) {
        if (!request && settled_) return;
        top.req_valid = request != nullptr;
        if (request) {
            top.req_write = request->write;
            top.req_addr = request->addr;
            top.req_data = request->data;
            top.req_strobe = request->strobe;
        }
        evaluate(0);
        settled_ = !request;
    }

    // The clock edge that ends a settled cycle.
    void edge() {
        top.rootp->__Vtrigprevexpr___TOP__clk__0 = 0;
        evaluate(1);
        ++cycles;
    }

    // A whole cycle; says whether the request was accepted.
    bool cycle(const Request *request) {
        settle(request);
        const bool accepted = request && top.req_ready;
        edge();
        return accepted;
    }

    uint64_t cycles = 0;

  private:
    // What `top.eval()` comes to, without its bookkeeping for features that are not used here; and `edge` tells the
    // model that the clock was low, instead of evaluating it once more. Two fifths of the time of a cycle.
    void evaluate(bool clk) {
        top.clk = clk;
        Vcuelight___024root___eval(top.rootp);
    }

    VerilatedContext context_;
    bool settled_ = false;

  public:
    Vcuelight top{&context_, ""};
};

}  // namespace cuelight
