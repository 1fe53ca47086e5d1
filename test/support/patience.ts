import { setTimeout as delay } from 'node:timers/promises';

/**
 * How long to wait for an event that must come, in milliseconds. It only guards against hanging: a slow machine must not
 * reach it. It is less than the time limit of a test, so that the error says which event did not come.
 */
export const PATIENCE_MS = 120_000;

const POLL_MS = 20;

/**
 * Waits until the condition holds.
 *
 * @param what completes the sentence "Waited in vain until …".
 * @throws if the condition throws, or does not hold within PATIENCE_MS.
 */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const begun = performance.now();
  while (!(await isSo())) {
    if (performance.now() - begun > PATIENCE_MS) throw new Error(`Waited in vain until ${what}`);
    await delay(POLL_MS);
  }
}
