import { programPath } from './machine.js';

/**
 * A machine with nothing but Node.js can run the tests, except for suites that need more.
 *
 * @param names what the suite needs: programs (`nginx`) and environment variables (`TEST_DATABASE_URL`).
 * @returns `describe` if nothing is missing, otherwise `describe.skip`, with a line on standard error.
 * @throws if something is missing and REQUIRE_ALL_SUITES is 1.
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
 * Only root may mount a disk.
 *
 * @returns `test` if this process is root, otherwise `test.skip`, with a line on standard error.
 * @throws if this process is not root and REQUIRE_ALL_SUITES is 1.
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
