import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * How long to wait for an event that must come, in milliseconds. It only guards against hanging: a slow machine must not
 * reach it. It is less than the time limit of a test, so that the error says which event did not come.
 */
export const PATIENCE_MS = 120_000;

const POLL_MS = 20;

/** The real clock, even if a test moves it. */
const now = performance.now.bind(performance);

/**
 * Waits until the condition holds.
 *
 * @param what completes the sentence "Waited in vain until …".
 * @throws if the condition throws, or does not hold within PATIENCE_MS.
 */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const begun = now();
  while (!(await isSo())) {
    if (now() - begun > PATIENCE_MS) throw new Error(`Waited in vain until ${what}`);
    await delay(POLL_MS);
  }
}

/**
 * Waits until a program that was just started answers.
 *
 * @param options.output what the program has written, for the error.
 * @param options.stop is called if it does not start.
 * @throws if it ends first, or does not answer within PATIENCE_MS.
 */
export async function untilAnswers(
  program: string,
  child: ChildProcess,
  answers: () => Promise<boolean>,
  { output = () => '', stop }: { output?: () => string; stop?: () => Promise<void> } = {},
): Promise<void> {
  try {
    await until(`${program} answers`, () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${program} has ended`);
      return answers();
    });
  } catch (error) {
    await stop?.();
    throw new Error(`${program} did not start: ${output().slice(-2_000)}`, { cause: error });
  }
}
