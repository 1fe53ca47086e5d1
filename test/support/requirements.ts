import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where Debian keeps PostgreSQL's server programs, in a folder for each version. */
const POSTGRESQL = '/usr/lib/postgresql';
const SERVER_FOLDERS = existsSync(POSTGRESQL)
  ? readdirSync(POSTGRESQL).map((version) => join(POSTGRESQL, version, 'bin'))
  : [];

/** Daemons stand in the system's folders, which a person's PATH may leave out. */
const FOLDERS = [
  ...(process.env.PATH ?? '').split(delimiter),
  '/usr/sbin',
  '/usr/bin',
  '/usr/local/sbin',
  ...SERVER_FOLDERS,
];

/** The path of an installed program, or undefined. */
export function programPath(name: string): string | undefined {
  return FOLDERS.map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * `describe` where everything that a suite needs is there, else `describe.skip` and a word about it: a bare machine has
 * only Node.js.
 *
 * @param names programs, such as `nginx`, and environment variables, such as `TEST_DATABASE_URL`.
 * @throws where something is missing and REQUIRE_ALL_SUITES=1 says that nothing may be.
 */
export function needs(...names: string[]): jest.Describe {
  const missing = names.filter((name) =>
    /^[A-Z_]+$/.test(name) ? !process.env[name] : programPath(name) === undefined,
  );
  if (missing.length === 0) return describe;
  skipOrThrow(`${missing.join(' and ')}, missing here`);
  return describe.skip;
}

/**
 * `test` where the tests run as root, who may mount a disk, else `test.skip` and a word about it.
 *
 * @throws where they do not, and REQUIRE_ALL_SUITES=1 says that they must.
 */
export function needsRoot(): jest.It {
  if (process.getuid?.() === 0) return test;
  skipOrThrow('root for one test, and runs as another user');
  return test.skip;
}

function skipOrThrow(need: string): void {
  const lack = `${expect.getState().testPath} needs ${need}`;
  if (process.env.REQUIRE_ALL_SUITES === '1') throw new Error(lack);
  process.stderr.write(`Skipped: ${lack}\n`);
}
