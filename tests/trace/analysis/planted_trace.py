"""A training on a GPU whose times are known, written as a trace. Times in us."""

from __future__ import annotations

from traces import event, written

HOST, GPU = {"pid": 100, "tid": 100}, {"pid": 0, "tid": 7}


class Planted:
    """Events of the host are added in order. What they launch runs at the given time."""

    def __init__(self, step=None):
        """With one step of this length, if it is given."""
        self.events = []
        self.correlation = 0
        if step is not None:
            self.annotation("ProfilerStep#1", 0, step)

    def host(self, name, start, end, cat="cpu_op", **args):
        self.events.append(event(name, ts=start, dur=end - start, cat=cat, **HOST, **args))

    def annotation(self, name, start, end):
        self.host(name, start, end, "user_annotation")

    def launch(self, start, end, begins, ends, name="gemm", call="cudaLaunchKernel", cat="kernel", device=0, **args):
        """A call on the host, and what it makes the device do."""
        self.correlation += 1
        self.host(call, start, end, "cuda_runtime", correlation=self.correlation)
        where = {**GPU, "pid": device}
        self.events.append(
            event(name, ts=begins, dur=ends - begins, cat=cat, **where, device=device, stream=7,
                  correlation=self.correlation, **args)
        )  # fmt: skip

    def sync(self, start, end, call="cudaStreamSynchronize"):
        self.host(call, start, end, "cuda_runtime")

    def write(self, folder, name="planted.pt.trace.json", **header):
        return written(folder, self.events, name, **header)


def training():
    """Two steps of 1,000 us. In each, the device is busy for 300 us and idle for 700: 200 while the host waits for
    data, 100 between launch and begin, 150 while the host waits for it though it is done, 250 while the host works."""
    planted = Planted()
    for number, start in enumerate((0, 1000)):
        planted.annotation(f"ProfilerStep#{number + 3}", start, start + 1000)
        planted.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, start + 200)
        planted.annotation("rollout", start + 200, start + 600)
        planted.annotation("policy_forward", start + 350, start + 450)
        planted.host("aten::linear", start + 380, start + 440)
        planted.host("aten::addmm", start + 390, start + 430)
        # Idle until 400 (200 of data, 150 + 50 of host), then launched, begins 20 later, 100 long.
        planted.launch(start + 400, start + 410, start + 420, start + 520)
        planted.host("aten::item", start + 500, start + 600)
        # Done at 520; the host goes on waiting until 600, and for 70 more below.
        planted.sync(start + 510, start + 600)
        planted.annotation("update", start + 600, start + 1000)
        planted.sync(start + 600, start + 670, "cudaDeviceSynchronize")
        # 50 of host work, then 80 on its way, 200 long, until 1,000.
        planted.launch(start + 720, start + 730, start + 800, start + 1000, name="loss")
    return planted
