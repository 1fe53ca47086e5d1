const LEVELS = new Map([
  [10, 'trace'],
  [20, 'debug'],
  [30, 'info'],
  [40, 'WARN'],
  [50, 'ERROR'],
  [60, 'FATAL'],
]);
const ERROR = 50;
/** Members that are the same in every line. */
const OMITTED = new Set(['pid', 'hostname']);

interface Line {
  level: number;
  time: number;
  msg?: string;
  err?: { code?: string; message?: string; stack?: string };
}

/**
 * @param json a line that pino wrote.
 * @returns time, level, message and members for a person. An error's stack stands below.
 */
export function prettyLine(json: string): string {
  const { level, time, msg = '', err, ...members } = JSON.parse(json) as Line;
  const start = `${new Date(time).toTimeString().slice(0, 8)} ${(LEVELS.get(level) ?? '').padEnd(5)} ${msg}`;
  const reason = err && level < ERROR ? `: ${err.message || err.code || ''}` : '';
  const shown = Object.entries(members as Record<string, unknown>)
    .filter(([name]) => !OMITTED.has(name))
    .map(([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const stack = err && level >= ERROR ? (err.stack ?? err.message ?? '') : '';
  const below = stack.split('\n').filter((line) => line !== '');
  return [start + reason + shown.join(''), ...below.map((line) => `  ${line}`)]
    .map((line) => `${printable(line)}\n`)
    .join('');
}

/** Replaces control characters, which a terminal would obey. */
function printable(text: string): string {
  // eslint-disable-next-line no-control-regex -- these are what is replaced
  return text.replace(/[\0-\x1f\x7f-\x9f]/g, '\ufffd');
}
