"""The guides' pictures, each from a run: ``make docs``."""

from .draw_budgets import draw_budgets
from .draw_loop_point import draw_loop_point
from .draw_loop_points import draw_loop_points
from .draw_pause import draw_pause
from .draw_pipeline import draw_pipeline
from .draw_policies import draw_policies
from .draw_second_pass import draw_second_pass
from .draw_waveforms import draw_waveforms

for draw in (
    *(draw_loop_point, draw_loop_points, draw_pause, draw_second_pass),
    *(draw_pipeline, draw_budgets, draw_policies),
):
    print(draw())
for picture in draw_waveforms():
    print(picture)
