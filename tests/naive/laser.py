"""A surface laser on tiles, ten steps a frame, as physics 03, section 6.4 says it."""

import math

from .geometry import TileWorld, sq

HEIGHT, STEP, CORNER_TURN = 5.9, 0.1, 0.005524805665672641


class NaiveSurfaceLaser:
    """Place, sense and surface angle; no doors."""

    def __init__(self, world: TileWorld, x: float, y: float, angle: float, sense: int) -> None:
        self.world, self.x, self.y, self.angle, self.sense = world, x, y, angle, sense

    def frame(self) -> tuple[float, float, float]:
        """Crawl for a frame; return x, y and the angle."""
        near = self.world.gather(self.x - 12, self.y - 12, self.x + 12, self.y + 12)
        corner = self.closest(near)
        for _ in range(10):
            nx, ny = math.cos(self.angle), math.sin(self.angle)
            self.x, self.y = self.x - ny * self.sense * STEP, self.y + nx * self.sense * STEP
            point = self.closest(near)
            mx, my = self.x - point[0], self.y - point[1]
            length = math.hypot(mx, my)
            if length > 0:
                mx, my = mx / length, my / length
            if nx * mx + ny * my < 1e-7:
                self.sense = -self.sense
                self.x, self.y = self.x - ny * self.sense * STEP, self.y + nx * self.sense * STEP
                continue
            if math.dist(point, corner) < 1e-7:
                self.angle += self.sense * CORNER_TURN
                mx, my = math.cos(self.angle), math.sin(self.angle)
            else:
                self.angle = math.atan2(my, mx)
            self.x, self.y = point[0] + HEIGHT * mx, point[1] + HEIGHT * my
            corner = point
        return self.x, self.y, self.angle

    def closest(self, near) -> tuple[float, float]:
        """Return the point of the nearest segment."""
        points = [segment.closest(self.x, self.y)[1:] for segment in near]
        return min(points, key=lambda point: sq(self.x - point[0]) + sq(self.y - point[1]))
