import { setTimeout as delay } from 'node:timers/promises';

/**
 * How long to wait for what must come, in milliseconds. It is a guard against hanging only: no test passes or fails by
 * it on a machine that is merely busy. Less than the time limit of a test, so that the message says what did not come.
 */
export const PATIENCE_MS = 120_000;

const POLL_MS = 20;

/**
 * Asks again and again until the answer is yes.
 *
 * @param what completes the sentence "Waited in vain until …".
 * @throws if the question throws, or the answer stays no.
 */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const begun = performance.now();
  while (!(await isSo())) {
    if (performance.now() - begun > PATIENCE_MS) throw new Error(`Waited in vain until ${what}`);
    await delay(POLL_MS);
  }
}
