// Compares two texts by lines, and changed lines by words. Bounded: if the search for differences would take too long, the whole
// first text counts as removed and the whole second one as added.

export interface DiffPart {
  kind: "same" | "out" | "in";
  text: string;
}

/** The maximum number of steps of a search. */
const MOST_STEPS = 4_000_000;

/** The shortest edit script between two lists, by Myers' algorithm: kept, removed and added items. */
export function listDiff(one: string[], other: string[]): DiffPart[] {
  let begin = 0;
  while (begin < one.length && begin < other.length && one[begin] === other[begin]) begin += 1;
  let end = 0;
  while (end < one.length - begin && end < other.length - begin && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const kept = (list: string[]): DiffPart[] => list.map((text) => ({ kind: "same", text }));
  const middle = search(one.slice(begin, one.length - end), other.slice(begin, other.length - end));
  return [...kept(one.slice(0, begin)), ...middle, ...kept(end === 0 ? [] : one.slice(-end))];
}

function search(one: string[], other: string[]): DiffPart[] {
  const whole: DiffPart[] = [
    ...one.map((text): DiffPart => ({ kind: "out", text })),
    ...other.map((text): DiffPart => ({ kind: "in", text })),
  ];
  if (one.length === 0 || other.length === 0) return whole;
  const most = one.length + other.length;
  const reached = new Map<number, number>([[1, 0]]);
  const trail: Map<number, number>[] = [];
  let steps = 0;
  for (let depth = 0; depth <= most; depth += 1) {
    trail.push(new Map(reached));
    for (let line = -depth; line <= depth; line += 2) {
      const down = line === -depth || (line !== depth && (reached.get(line - 1) ?? -1) < (reached.get(line + 1) ?? -1));
      let x = down ? (reached.get(line + 1) ?? 0) : (reached.get(line - 1) ?? 0) + 1;
      while (x < one.length && x - line < other.length && one[x] === other[x - line]) {
        x += 1;
        steps += 1;
      }
      reached.set(line, x);
      if (x >= one.length && x - line >= other.length) return walkBack(one, other, trail, depth);
    }
    steps += depth * 2;
    if (steps > MOST_STEPS) return whole;
  }
  return whole;
}

function walkBack(one: string[], other: string[], trail: Map<number, number>[], depth: number): DiffPart[] {
  const parts: DiffPart[] = [];
  let x = one.length;
  let y = other.length;
  for (let step = depth; step >= 0; step -= 1) {
    const reached = trail[step] as Map<number, number>;
    const line = x - y;
    const down = line === -step || (line !== step && (reached.get(line - 1) ?? -1) < (reached.get(line + 1) ?? -1));
    const from = down ? line + 1 : line - 1;
    const fromX = step === 0 ? 0 : (reached.get(from) ?? 0);
    const fromY = step === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      parts.push({ kind: "same", text: one[x] as string });
    }
    if (step === 0) break;
    if (down) parts.push({ kind: "in", text: other[(y -= 1)] as string });
    else parts.push({ kind: "out", text: one[(x -= 1)] as string });
  }
  return parts.reverse();
}

export interface LineDiff extends DiffPart {
  /** The line numbers in the first and the second text; `null` if it is absent there. */
  before: number | null;
  after: number | null;
}

/** Compares two texts line by line. */
export function lineDiff(before: string, after: string): LineDiff[] {
  let [one, other] = [0, 0];
  return listDiff(before.split("\n"), after.split("\n")).map((part) => ({
    ...part,
    before: part.kind === "in" ? null : (one += 1),
    after: part.kind === "out" ? null : (other += 1),
  }));
}

/** Only the changed lines with some context; `null` marks omitted lines. */
export function hunks(lines: LineDiff[], around = 3): (LineDiff | null)[] {
  const near = lines.map(() => false);
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    for (let each = Math.max(0, index - around); each <= Math.min(lines.length - 1, index + around); each += 1) near[each] = true;
  });
  const shown: (LineDiff | null)[] = [];
  lines.forEach((line, index) => {
    if (near[index]) shown.push(line);
    else if (shown.at(-1) !== null) shown.push(null);
  });
  return shown;
}

/** The maximum length of texts that are compared by words. */
const LONGEST = 20_000;

/** Compares two short texts word by word. */
export function wordDiff(before: string, after: string): DiffPart[] {
  if (before.length + after.length > LONGEST) {
    return [{ kind: "out", text: before }, { kind: "in", text: after }];
  }
  const words = (text: string) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
  const joined: DiffPart[] = [];
  for (const part of listDiff(words(before), words(after))) {
    const last = joined.at(-1);
    if (last?.kind === part.kind) last.text += part.text;
    else joined.push({ ...part });
  }
  return joined;
}
