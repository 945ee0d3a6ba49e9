"""README's section "How fast", in both languages, written from the recorded result."""

from pathlib import Path

import tables
from contenders import RIVALS, ROOT
from judge import judge
from results import RECORDED, Result

BEGIN, END = "<!-- from benchmarks/results/peers.json: make peers-readme -->", "<!-- end -->"
PAGES = {"en": ROOT / "README.md", "zh": ROOT / "README.zh-CN.md"}

_WORDS = {
    "en": {
        "title": "## How fast",
        "warm-5.6s": "warm call, 5.6 s",
        "warm-30s": "warm call, 30 s",
        "cold": "cold process to first text",
        "load": "model load",
        "memory": "peak memory, ours ÷ its",
        "engine": "of it the engine: its own int8 file, lossless changes only",
        "file": "of it the file: its program, our int8 file",
        "head": "full size, one thread",
        "intro": "SenseVoiceSmall's network at full size ({weights}) on {cpu}, one thread: the "
        "peer's {clock} divided by ours, the median of {pairs} turns ({processes} fresh processes) "
        "with its 95 % interval. Ours needs {ms_5:.0f} ms for 5.6 s (RTF {rtf_5:.3f}) and "
        "{ms_30:.0f} ms for 30 s (RTF {rtf_30:.3f}), reading and text included{share}.{noisy}",
        "weights": "234 M parameters, random weights",
        "wall": "wall time",
        "cpu": "CPU time",
        "noisy": " Other work kept the machine busy.",
        "share": "; {share:.0f} % of what the core's multipliers allow at 5.6 s",
        "outro": "Rows, targets, threads, memory, agreement with fp32 and what each peer does with "
        "our file: [the whole result](benchmarks/results/peers.md). To repeat it:",
    },
    "zh": {
        "title": "## 有多快",
        "warm-5.6s": "热调用，5.6 秒",
        "warm-30s": "热调用，30 秒",
        "cold": "冷进程到首个文本",
        "load": "模型加载",
        "memory": "峰值内存，本项目 ÷ 对方",
        "engine": "其中引擎：对方自己的 int8 文件，只做无损改写",
        "file": "其中文件：对方的程序，我们的 int8 文件",
        "head": "完整规模，单线程",
        "intro": "完整规模的 SenseVoiceSmall 网络（{weights}），{cpu}，单线程：对方的 {clock}"
        "除以我们的，{pairs} 轮交替（{processes} 个新进程）的中位数与 95 % 区间。"
        "我们处理 5.6 秒需 {ms_5:.0f} ms（RTF "
        "{rtf_5:.3f}），30 秒需 {ms_30:.0f} ms（RTF {rtf_30:.3f}），含读取与文本{share}。{noisy}",
        "weights": "2.34 亿参数，随机权重",
        "wall": "墙钟时间",
        "cpu": "CPU 时间",
        "noisy": "测量时机器上有其他任务。",
        "share": "；5.6 秒时达到该核心乘法器上限的 {share:.0f} %",
        "outro": "各行、目标、线程、内存、与 fp32 的一致性，以及对方使用我们文件的结果："
        "[完整结果](benchmarks/results/peers.md)。重复测量：",
    },
}


def section(result: Result, language: str) -> str:
    """The section between its marks."""
    words = _WORDS[language]
    clock = result.facts["clock"]
    wall = f"{clock}_ns"
    by_peer = {
        (j.target.what, j.target.peer): tables.cell(j.interval) for j in judge(result, clock=clock)
    }

    def line(name: str, found: list[str]) -> list[str]:
        return [words[name], *found]

    def told(what: str) -> list[str]:
        return [by_peer[what, peer] for peer in RIVALS]

    key = "warm-5.6s-1t"
    layouts = {peer: ours.partition("/")[2] for peer, ours in RIVALS.items()}
    engine = [tables.cell(result.ratio(key, peer, f"ours-lossless/{layout}", wall))
              for peer, layout in layouts.items()]  # fmt: skip
    file = [tables.cell(result.ratio(key, peer, f"{peer} + our file", wall)) for peer in layouts]
    body = tables.table(
        (words["head"], *(f"{peer} int8" for peer in RIVALS)),
        [
            line("warm-5.6s", told("warm, 5.6 s")),
            line("engine", engine),
            line("file", file),
            line("warm-30s", told("warm, 30 s")),
            line("cold", told("cold process to first text")),
            line("load", told("model load")),
            line("memory", told("peak memory, ours ÷ peer")),
        ],
    )
    intro = words["intro"].format(**_numbers(result, wall, words))
    parts = [words["title"], intro, body, words["outro"], "    make peers"]
    return f"{BEGIN}\n" + "\n\n".join(parts) + f"\n\n{END}"


def _numbers(result: Result, wall: str, words: dict[str, str]) -> dict[str, object]:
    ours = "ours/sherpa"
    short, long = (result.median(f"warm-{s}s-1t", ours, wall) for s in ("5.6", "30"))
    assert short is not None and long is not None  # noqa: PT018 - a recorded result has both
    row = result.rows["warm-5.6s-1t"]
    cpu = result.median("warm-5.6s-1t", ours, "cpu_ns")
    share = ""
    if cpu is not None and (percent := tables.share(result, row, cpu)) is not None:
        share = words["share"].format(share=percent)
    return {
        "weights": words["weights"],
        "clock": words[wall.removesuffix("_ns")],
        "noisy": words["noisy"] if row["noise"]["class"] == "noisy" else "",
        "cpu": result.facts["machine"]["cpu"],
        "pairs": len(result.values("warm-5.6s-1t", ours)),
        "processes": len(result.values("fresh-5.6s-1t", ours)),
        "ms_5": short.median / 1e6,
        "rtf_5": short.median / 5.6e9,
        "ms_30": long.median / 1e6,
        "rtf_30": long.median / 30e9,
        "share": share,
    }


def replaced(page: str, new: str) -> str:
    """A page with its section replaced.

    Raises:
        ValueError: the page has no such section.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected {BEGIN} ... {END}")
    return before + new + after


def write(result: Result | None = None, pages: dict[str, Path] = PAGES) -> None:
    """Write the section into both pages."""
    result = result or Result.read(RECORDED)
    for language, path in pages.items():
        text = path.read_text(encoding="utf-8")
        path.write_text(replaced(text, section(result, language)), encoding="utf-8")
