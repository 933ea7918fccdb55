// The Verilated shell as cycles: inputs are set, it settles, outputs are read, the clock ticks.

#include <cstring>

#include "Vshell.h"
#include "ports.h"

namespace {

struct Shell {
    VerilatedContext context;
    Vshell top{&context, ""};
    uint32_t modes = 0;

    void evaluate(bool clock) {
        top.user_clk = clock;
        top.eval();
    }

    // Whether something shows that whoever is outside must look at.
    bool speaks() const {
        return top.s_axis_rq_tvalid || top.s_axis_cc_tvalid || top.commit_valid || top.pcie_cq_np_req ||
               top.cfg_flr_done || top.modes != modes;
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void *shell_open() { return new Shell; }

EXPORT void shell_close(Shell *shell) { delete shell; }

// Where a port lies, and how many bytes it has there; 0 if there is none of this name.
EXPORT uint32_t shell_port(Shell *shell, const char *name, void **place) {
#define PORT(port)                  \
    if (!std::strcmp(name, #port)) { \
        *place = &shell->top.port;  \
        return sizeof shell->top.port; \
    }
    SHELL_PORTS(PORT)
    return 0;
}

// Lets inputs have their effect within the cycle.
EXPORT void shell_settle(Shell *shell) { shell->evaluate(false); }

// The end of a settled cycle.
EXPORT void shell_tick(Shell *shell) {
    shell->modes = shell->top.modes;
    shell->evaluate(true);
}

// Cycles in which nothing shows, `limit` at most, with the inputs as they are. After fewer, the next one has settled.
EXPORT uint32_t shell_rest(Shell *shell, uint32_t limit) {
    for (uint32_t cycles = 0; cycles < limit; ++cycles) {
        shell_settle(shell);
        if (shell->speaks()) return cycles;
        shell_tick(shell);
    }
    return limit;
}
