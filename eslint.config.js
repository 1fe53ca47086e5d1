import { existsSync } from 'node:fs';
import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

/** The folders of src/, from the ground up. A folder imports from those before it, never from one after it. */
const FOLDERS = [
  'config',
  'logging',
  'openapi',
  'errors',
  'connection',
  'json-body',
  'auth',
  'database',
  'http',
  'operations',
  'plants',
];

/** docs/ARCHITECTURE.md: imports point down. */
const importsPointDown = FOLDERS.map((folder, floor) => ({
  files: [`src/${folder}/**/*.ts`],
  // A spec may use the whole service; the data source names the entity, so that TypeORM knows the table.
  ignores: ['**/*.spec.ts', 'src/database/data-source.ts'],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            group: [
              ...FOLDERS.slice(floor + 1).map((above) => `**/${above}/**`),
              '**/app.js',
              '**/app.module.js',
              '**/main.js',
            ],
            message: `Imports point down: ${folder}/ imports from no folder above it.`,
          },
        ],
      },
    ],
  },
}));

// Without the packages of test/package.json these suites have no types.
const suitesWithoutPackages = existsSync('test/node_modules') ? [] : ['test/browser', 'test/interop'];

export default tseslint.config(
  {
    ignores: [
      'dist',
      'data',
      'artifacts',
      'src/openapi/contract.generated.ts',
      'bench/results',
      ...suitesWithoutPackages,
    ],
  },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Nest's modules are classes that hold decorators.
      '@typescript-eslint/no-extraneous-class': [
        'error',
        { allowWithDecorator: true, allowStaticOnly: true },
      ],
      // A DTO is its members: an object literal of the same members is one.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/config/**'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only src/config reads the environment.' },
      ],
    },
  },
  ...importsPointDown,
  {
    files: ['**/*.js'],
    languageOptions: {
      globals: { process: 'readonly', URL: 'readonly', console: 'readonly', fetch: 'readonly' },
    },
  },
);
