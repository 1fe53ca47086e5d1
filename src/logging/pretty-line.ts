const LEVELS = new Map([
  [10, 'trace'],
  [20, 'debug'],
  [30, 'info'],
  [40, 'WARN'],
  [50, 'ERROR'],
  [60, 'FATAL'],
]);

interface Line {
  level: number;
  time: number;
  msg?: string;
  err?: { stack?: string; message?: string };
}

/**
 * A log line as a person reads it: time, level, message and members, with the stack of an error below.
 *
 * @param json a line as pino writes it.
 */
export function prettyLine(json: string): string {
  const line = JSON.parse(json) as Line;
  const { level, time, msg = '', err, ...members } = line;
  const shown = Object.entries(members)
    .filter(([name]) => name !== 'pid' && name !== 'hostname')
    .map(([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const at = new Date(time).toTimeString().slice(0, 8);
  const text = `${at} ${(LEVELS.get(level) ?? String(level)).padEnd(5)} ${msg}${shown.join('')}`;
  const stack = err === undefined ? '' : `\n${err.stack ?? err.message ?? ''}`;
  return `${printable(text)}${printable(stack).replaceAll('\n', '\n  ')}\n`;
}

/** Without characters that a terminal would obey. */
function printable(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, '\ufffd');
}
