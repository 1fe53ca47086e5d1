import { appendFileSync } from 'node:fs';

/** A Jest reporter that adds a run's counts to the file named by TEST_TALLY, for the closing line of `.ci/run`. */
export default class Tally {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numFailedTestSuites, numPendingTests }) {
    const failed = Math.max(numFailedTests, numFailedTestSuites);
    appendFileSync(process.env.TEST_TALLY, `${numPassedTests} ${failed} ${numPendingTests}\n`);
  }
}
