import { programPath } from './machine.js';

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
