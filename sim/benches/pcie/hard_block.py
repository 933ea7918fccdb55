"""The hard block's model, and what it lacks: poisoned writes, completion timeouts, and resets of link and function.

Reference: AMD PG213 (1.3), "Requester Completion Descriptor" for what a request ends with that has no completion.
"""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge, Timer
from cocotbext.axi import AxiStreamBus
from cocotbext.pcie.core.tlp import CplStatus, TlpType
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice
from cocotbext.pcie.xilinx.us.tlp import ErrorCode, Tlp_us
from cocotbext.pcie.xilinx.us.usp_model import LocalError

__all__ = ["BAR_BYTES", "HardBlock"]

BAR_BYTES = {0: 1 << 16, 2: 1 << 12}
_CLOCK_HZ = 250e6
_WRITES = (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)
_READS = (TlpType.MEM_READ, TlpType.MEM_READ_64)


class HardBlock(UltraScalePlusPcieDevice):  # type: ignore[misc]
    """In front of the device.

    Parameters
    ----------
    dut
        The simulated `PcieBenchTop`.
    """

    timeout_ns = 8_000
    """After which a request of the device is given up."""
    tells_timeouts = False
    """The device is told on RC of a request that is given up; else it must know by itself."""

    def __init__(self, dut: Any) -> None:
        names = (
            *("user_clk", "user_reset", "pcie_cq_np_req", "pcie_cq_np_req_count"),
            *("pcie_rq_seq_num0", "pcie_rq_seq_num_vld0", "pcie_rq_seq_num1", "pcie_rq_seq_num_vld1"),
            *("cfg_local_error_out", "cfg_local_error_valid", "cfg_function_status", "cfg_max_payload"),
            *("cfg_interrupt_msix_enable", "cfg_interrupt_msix_mask"),
        )
        super().__init__(
            pcie_generation=3,
            pcie_link_width=8,
            user_clk_frequency=_CLOCK_HZ,
            alignment="dword",
            max_payload_size=256,
            pf0_msix_enable=True,
            pf0_msix_table_size=3,
            pf0_msix_table_bir=2,
            pf0_msix_pba_bir=2,
            pf0_msix_pba_offset=0x800,
            cq_bus=AxiStreamBus.from_prefix(dut, "m_axis_cq"),
            cc_bus=AxiStreamBus.from_prefix(dut, "s_axis_cc"),
            rq_bus=AxiStreamBus.from_prefix(dut, "s_axis_rq"),
            rc_bus=AxiStreamBus.from_prefix(dut, "m_axis_rc"),
            **{name: getattr(dut, name if name != "user_clk" else "clk") for name in names},
        )
        self.function = self.functions[0]
        for bar, size in BAR_BYTES.items():
            self.function.configure_bar(bar, size)

    @property
    def streams(self) -> tuple[Any, Any, Any, Any]:
        """CQ, CC, RQ and RC."""
        return self.cq_source, self.cc_sink, self.rq_sink, self.rc_source

    async def upstream_recv(self, tlp: Any) -> None:
        """Take a packet from the link."""
        if tlp.ep and tlp.fmt_type in _WRITES:
            tlp.release_fc()
            self.local_error.put_nowait(LocalError.AXI4ST_CQ_EP_DROP)
        else:
            await super().upstream_recv(tlp)

    async def send(self, tlp: Any) -> None:
        """Put a packet of the device on the link."""
        if tlp.fmt_type in _READS:
            cocotb.start_soon(self._give_up(self.active_request[tlp.tag]))
        await super().send(tlp)

    async def _give_up(self, request: Any) -> None:
        await Timer(self.timeout_ns, unit="ns")
        if self.active_request[request.tag] is request:
            self._terminate(request, ErrorCode.TIMEOUT if self.tells_timeouts else None)

    def terminate_requests(self) -> None:
        """In a function-level reset."""
        for request in self.active_request:
            if request is not None:
                self._terminate(request, ErrorCode.FLR)

    def _terminate(self, request: Any, code: ErrorCode | None) -> None:
        """The tag is free; with a code, RC tells of it, in a descriptor whose other fields mean nothing."""
        self.active_request[request.tag] = None
        if code is not None:
            news = Tlp_us()
            news.fmt_type = TlpType.CPL
            news.tag, news.requester_id = request.tag, request.requester_id
            news.error_code, news.request_completed = code, True
            news.status, news.length, news.byte_count, news.lower_address = CplStatus.UR, 1, 4095, 4095
            self.rc_queue.put_nowait(news)

    async def reset_link(self, cycles: int) -> None:
        """Hold ``user_reset`` up, for so many cycles at least; packets that have begun are broken off.

        As of a hot reset, or a link that was down: requests, packets and the function's settings are forgotten.
        """
        self.user_reset.value = 1
        await RisingEdge(self.user_clk)
        for stream in self.streams:
            stream.clear()
            stream.queue_occupancy_bytes = stream.queue_occupancy_frames = 0
            stream.dequeue_event.set()
        for sink in (self.cc_sink, self.rq_sink):
            if sink.active:
                _break_off(sink)
        for queue in (self.cq_queue, self.cq_np_queue, self.rc_queue, self.rq_np_queue, self.local_error):
            while not queue.empty():
                queue.get_nowait()
        for tag in range(len(self.active_request)):
            self.active_request[tag] = None
        self.cq_np_req_count = self.cpld_credit_count = 0
        self.rx_buf_cplh_fc_count = self.rx_buf_cpld_fc_count = 0
        self._forget_settings()
        # A model's source can't break a packet off: what is left of it comes while the device is in reset.
        sources = (self.cq_source, self.rc_source)
        for source in sources:
            source.reset = None
        while cycles > 0 or not all(source.idle() for source in sources):
            await RisingEdge(self.user_clk)
            cycles -= 1
        for source in sources:
            source.reset = self.user_reset
        self.user_reset.value = 0

    def _forget_settings(self) -> None:
        function = self.function
        function.memory_space_enable = function.bus_master_enable = False
        function.msix_cap.msix_enable = function.msix_cap.msix_function_mask = False
        for bar, mask in enumerate(function.bar_mask):
            function.bar[bar] &= ~mask


def _break_off(sink: Any) -> None:
    """The packet that has begun is over, and to be thrown away."""
    rest = sink._transaction_obj()
    rest.tlast, rest.tuser = 1, 1 << sink.discontinue_offset
    sink.sample_obj = rest
    sink.sample_sync.set()
