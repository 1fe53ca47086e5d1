import { availableParallelism } from 'node:os';

/** What every project shares. */
const common = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: { '^.+\\.ts$': '<rootDir>/test/support/transform.js' },
};

/** A suite that takes longer or needs more than Node.js: a folder of `test/`, run by `npm run test:<name>`. */
const suite = (displayName) => ({
  ...common,
  displayName,
  roots: ['<rootDir>/src', `<rootDir>/test/${displayName}`],
  testMatch: [`<rootDir>/test/${displayName}/*.spec.ts`],
});

/** @type {import('jest').Config} */
export default {
  projects: [
    {
      ...common,
      displayName: 'service',
      roots: ['<rootDir>/src', '<rootDir>/test'],
      testMatch: ['<rootDir>/src/**/*.spec.ts', '<rootDir>/test/*.spec.ts'],
    },
    ...['commands', 'faults', 'gateway', 'browser', 'image', 'interop', 'fuzz'].map(suite),
  ],
  globalSetup: './test/support/global-setup.js',
  globalTeardown: './test/support/global-teardown.js',
  reporters: [
    'default',
    './test/support/contract-judge.js',
    ...(process.env.TEST_TALLY === undefined ? [] : ['./.ci/tally.js']),
  ],
  // For a test that hangs. On a busy machine a good one may take a minute.
  testTimeout: 180_000,
  // Much of a run is waiting, so each processor has work for more than one worker.
  maxWorkers: availableParallelism() + 2,
};
