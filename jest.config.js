import { availableParallelism } from 'node:os';

/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/src', '<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
  globalSetup: './test/support/global-setup.js',
  globalTeardown: './test/support/global-teardown.js',
  reporters: [
    'default',
    './test/support/contract-judge.js',
    ...(process.env.TEST_TALLY === undefined ? [] : ['./.ci/tally.js']),
  ],
  testTimeout: 30_000,
  // Much of a run is waiting. Jest's own default, the processors less one, would leave a machine of two with one worker.
  maxWorkers: Math.max(2, availableParallelism() - 1),
};
