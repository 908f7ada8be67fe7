"""The ninja in plain Python, written from the text of physics 01, sections 4 to 12; tiles only."""

import math

from .geometry import TileWorld, sq

FALL_GRAVITY, JUMP_GRAVITY = 0.06666666666666665, 0.01111111111111111
GROUND_ACCELERATION, AIR_ACCELERATION = 0.06666666666666665, 0.04444444444444444
REGULAR_DRAG, SLOW_DRAG = 0.9933221725495059, 0.8617738760127536
GROUND_FRICTION, SLOW_GROUND_FRICTION, WALL_FRICTION = 0.9459290248857720, 0.8617738760127536, 0.9113380468927672
MAX_SPEED = 3.333333333333333


class NaiveNinja:
    """One ninja in a world of tiles; the names are those of section 0.4."""

    def __init__(self, world: TileWorld, x: float, y: float, vx: float = 0.0, vy: float = 0.0):
        self.world = world
        self.x, self.y, self.vx, self.vy = x, y, vx, vy
        self.g, self.drag = FALL_GRAVITY, REGULAR_DRAG
        self.state, self.airborne, self.walled = 0, False, False
        self.held, self.h = 0, 0
        self.J = self.F = self.W = self.P = -1
        self.w, self.fx, self.fy = 0.0, 0.0, -1.0

    def frame(self, code: int) -> None:
        """Section 4, with the input byte of section 14.4."""
        jump = code & 1
        direction = -1 if code & 4 else 1 if code & 2 else 0
        if self.state not in (6, 9):
            self.integrate()
            for _ in range(4):
                self.collide()
            self.post_collision()
        self.think(direction, jump)
        if code & 8:
            self.kill()

    def integrate(self) -> None:
        """Section 6."""
        self.vx *= self.drag
        self.vy *= self.drag
        self.vy += self.g
        self.x0, self.y0 = self.x, self.y
        self.x += self.vx
        self.y += self.vy
        self.ux, self.uy = self.vx, self.vy
        self.floors: list[tuple[float, float]] = []
        self.ceilings: list[tuple[float, float]] = []

    def collide(self) -> None:
        """Section 8: always both halves, whatever earlier passes found."""
        mx, my = self.x - self.x0, self.y - self.y0
        f = self.world.sweep(self.x0, self.y0, mx, my)
        self.x, self.y = self.x0 + f * mx, self.y0 + f * my
        for _ in range(32):
            if not self.depenetrate():
                return

    def depenetrate(self) -> bool:
        """One round of section 8.2; False when it says stop."""
        code, a, b = self.world.closest_point(self.x, self.y)
        if code == 0:
            return False
        dx, dy = self.x - a, self.y - b
        if abs(dx) <= 0.0000001:
            dx = 0.0
            if self.x in (50.51197510492316, 49.23232124849253):
                dx = -(2.0**-47)
            if self.x == 49.153536108584795:
                dx = 2.0**-47
        d = math.sqrt(sq(dx) + sq(dy))
        depth = 10 - d * code
        if d == 0 or depth < 0.0000001:
            return False
        self.x += (dx / d) * depth
        self.y += (dy / d) * depth
        if self.vx * dx + self.vy * dy < 0:
            z = (self.vx * dy - self.vy * dx) / sq(d)
            self.vx, self.vy = z * dy, z * -dx
        (self.ceilings if dy >= -0.0001 else self.floors).append((dx / d, dy / d))
        return True

    def post_collision(self) -> None:
        """Section 9."""
        rho = 10 + 0.1
        candidate = 0.0
        for segment in self.world.gather(self.x - rho, self.y - rho, self.x + rho, self.y + rho):
            _, a, b = segment.closest(self.x, self.y)
            dx, dy = self.x - a, self.y - b
            d = math.sqrt(sq(dx) + sq(dy))
            if abs(dy) < 0.00001 and 0 < d <= rho and candidate == 0:
                candidate = dx / d
        was_airborne, self.airborne, self.walled = self.airborne, True, False
        if candidate != 0:
            self.walled, self.w = True, candidate
        if self.floors:
            self.airborne = False
            self.fx, self.fy = self.mean(self.floors, -1.0)
            if self.state != 8 and was_airborne:
                self.impact(self.fx, self.fy)
        if self.ceilings:
            cx, cy = self.mean(self.ceilings, 1.0)
            if self.state != 8:
                self.impact(cx, cy)

    @staticmethod
    def mean(normals: list[tuple[float, float]], default: float) -> tuple[float, float]:
        sx = sy = 0.0
        for x, y in normals:
            sx += x
            sy += y
        n = math.sqrt(sq(sx) + sq(sy))
        return (0.0, default) if n == 0 else (sx / n, sy / n)

    def impact(self, nx: float, ny: float) -> None:
        if -(nx * self.ux + ny * self.uy) > 6 - (4 / 3) * abs(ny):
            self.vx, self.vy = self.ux, self.uy
            self.kill()

    def kill(self) -> None:
        """Section 12.2."""
        if self.state < 6:
            if self.state == 3:
                self.g = FALL_GRAVITY
            self.state = 7

    def think(self, H: int, A: int) -> None:
        """Sections 11.1 and 11.2."""
        new_press = A == 1 and self.held == 0
        self.held = A
        self.P = self.P + 1 if 0 <= self.P <= 2 else -1
        self.J, self.W, self.F = (timer + 1 if 0 <= timer <= 4 else -1 for timer in (self.J, self.W, self.F))
        within_jump, within_wall, within_floor = (0 <= timer <= 4 for timer in (self.J, self.W, self.F))
        if new_press and self.airborne:
            self.J = 0
        if self.walled:
            self.W = 0
        if not self.airborne:
            self.F = 0
        if self.state in (6, 9):
            return
        if self.state == 7:
            self.state = 6
        elif self.state == 8:
            self.drag = REGULAR_DRAG if self.airborne else SLOW_DRAG
        elif self.airborne:
            self.think_in_air(H, A, within_jump or new_press, within_wall, within_floor)
        else:
            self.think_on_ground(H, within_jump or new_press)

    def think_on_ground(self, H: int, jump: bool) -> None:
        """Section 11.3."""
        c = self.vx + GROUND_ACCELERATION * H
        if abs(c) < MAX_SPEED:
            self.vx = c
        if self.state > 2:
            if self.state == 3:
                self.g = FALL_GRAVITY
            self.state = 2 if self.vx * H <= 0 else 1
        if jump:
            self.floor_jump(H)
            return
        s = abs(self.vy * self.fx - self.vx * self.fy)
        getattr(self, ("stand", "run", "slide")[self.state])(H, s, c)

    def slide(self, H: int, s: float, c: float) -> None:
        if (H * s) * self.vx > 0:
            self.state = 1
            return
        if s < 0.1 and self.fx == 0:
            self.state = 0
            return
        if self.vy < 0 and self.fx != 0:
            v = math.sqrt(sq(self.vx) + sq(self.vy))
            phi = abs((self.vx * (1 - GROUND_FRICTION)) * self.fy)
            slower = v - phi * sq(self.fy)
            self.vx, self.vy = (self.vx / v) * slower, (self.vy / v) * slower
            return
        self.vx *= GROUND_FRICTION

    def run(self, H: int, s: float, c: float) -> None:
        if (H * s) * self.vx > 0:
            if H * self.fx >= 0:
                return
            if abs(c) < MAX_SPEED:
                k = (GROUND_ACCELERATION / 2) * H
                self.vx += (k * self.fy) * self.fy
                self.vy += (k * self.fy) * -self.fx
            return
        self.state = 2

    def stand(self, H: int, s: float, c: float) -> None:
        if H != 0:
            self.state = 1
        elif s < 0.1:
            self.vx *= SLOW_GROUND_FRICTION
        else:
            self.state = 2

    def think_in_air(self, H: int, A: int, jump: bool, within_wall: bool, within_floor: bool) -> None:
        """Section 11.4."""
        c = self.vx + AIR_ACCELERATION * H
        if abs(c) < MAX_SPEED:
            self.vx = c
        if self.state < 3:
            self.state = 4
            return
        if self.state == 3:
            self.h += 1
            if A == 0 or self.h > 45:
                self.g, self.state = FALL_GRAVITY, 4
                return
        if jump and (self.walled or within_wall):
            self.wall_jump(H)
        elif jump and within_floor:
            self.floor_jump(H)
        elif not self.walled:
            if self.state == 5:
                self.state = 4
        elif self.state == 5:
            if H * self.w <= 0:
                self.vy *= WALL_FRICTION
            else:
                self.state = 4
        elif self.vy > 0 and H * self.w < 0:
            if self.state == 3:
                self.g = FALL_GRAVITY
            self.state = 5

    def floor_jump(self, H: int) -> None:
        """Section 10.1."""
        self.J = self.F = self.P = -1
        self.state, self.g = 3, JUMP_GRAVITY
        off_slope = ((2 / 3) * self.fx, 2 * self.fy)
        if self.fx == 0:
            jump = (0.0, -2.0)
        elif self.vx * self.fx >= 0:
            jump = off_slope if self.vx * H >= 0 else (0.0, -1.4)
        elif self.vx * H > 0:
            jump = (0.0, -1.4)
        else:
            jump = off_slope
            self.vx = 0.0
        self.push_off(*jump)

    def wall_jump(self, H: int) -> None:
        """Section 10.2."""
        jx, jy = (2 / 3, -1.0) if H * self.w < 0 and self.state == 5 else (1.0, -1.4)
        self.state, self.g = 3, JUMP_GRAVITY
        if self.vx * self.w < 0:
            self.vx = 0.0
        self.push_off(jx * self.w, jy)
        self.J = self.W = self.P = -1

    def push_off(self, jx: float, jy: float) -> None:
        if self.vy > 0:
            self.vy = 0.0
        self.vx += jx
        self.vy += jy
        self.x += jx
        self.y += jy
        self.h = 0

    def everything(self) -> dict[str, float]:
        """All that is remembered, by the simulator's names."""
        return {
            "x": self.x,
            "y": self.y,
            "vx": self.vx,
            "vy": self.vy,
            "gravity": self.g,
            "drag": self.drag,
            "floor_x": self.fx,
            "floor_y": self.fy,
            "wall_normal": self.w,
            "state": self.state,
            "airborne": self.airborne,
            "walled": self.walled,
            "jump_held": self.held,
            "jump_duration": self.h,
            "jump_buffer": self.J,
            "floor_buffer": self.F,
            "wall_buffer": self.W,
            "pad_buffer": self.P,
        }
