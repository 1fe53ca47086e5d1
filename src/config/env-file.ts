import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';

/** One entry: nothing, a comment, or a variable. Its value is bare or in quotes; a quoted value may span lines. */
const ENTRY =
  /[^\S\n]*(?:(?:export[^\S\n]+)?(?<name>[A-Za-z_]\w*)[^\S\n]*=[^\S\n]*(?:'(?<single>[^']*)'|"(?<double>[^"]*)"|`(?<tick>[^`]*)`|(?<bare>[^\s#'"`][^\n\r#]*)?)[^\S\n]*)?(?:(?<!\S)#[^\n]*)?(?:\n|$)/y;

/**
 * Reads a file of `NAME=value` lines in the format of Node's `--env-file`. Node skips a line that it does not
 * understand. Here it is a fault, so that no variable is lost silently.
 *
 * @param path the file, which need not exist.
 * @returns the variables, and a sentence for each line that cannot be read exactly as written.
 */
export function readEnvFile(path: string): { variables: Map<string, string>; faults: string[] } {
  const variables = new Map<string, string>();
  const faults: string[] = [];
  let content = '';
  try {
    content = decode(readFileSync(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') faults.push(`${path} ${code === undefined ? message : `cannot be read: ${code}`}`);
  }
  let line = 1;
  for (let index = 0; index < content.length;) {
    ENTRY.lastIndex = index;
    const { name, single, double, tick, bare } = ENTRY.exec(content)?.groups ?? {};
    const isUnderstood = ENTRY.lastIndex > 0;
    const end = isUnderstood ? ENTRY.lastIndex : content.indexOf('\n', index) + 1 || content.length;
    if (!isUnderstood) {
      faults.push(
        `${path} line ${line} is not NAME=value (a value with # or quotes in it must be within quotes)`,
      );
    } else if (name !== undefined) {
      if (variables.has(name)) faults.push(`${path} line ${line} sets ${name} again`);
      variables.set(name, single ?? double?.replaceAll('\\n', '\n') ?? tick ?? bare?.trimEnd() ?? '');
    }
    line += content.slice(index, end).split('\n').length - 1;
    index = end;
  }
  return { variables, faults };
}

/** @throws {Error} without a `code`, whose message completes a sentence that starts with the file's name. */
function decode(content: Buffer): string {
  const text = content.toString('utf8');
  if (text.startsWith('\ufeff'))
    throw new Error('line 1 starts with a byte order mark: save the file as UTF-8 without one');
  // Bytes that are not UTF-8 were replaced by U+FFFD. UTF-16 may happen to be UTF-8, with many U+0000.
  const broken = text.indexOf(isUtf8(content) ? '\0' : '\ufffd');
  if (broken >= 0)
    throw new Error(`line ${text.slice(0, broken).split('\n').length} is not UTF-8: save the file as UTF-8`);
  return text.replaceAll('\r\n', '\n');
}
