import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { ConfigError, loadConfig, VARIABLES, type Config } from './config.js';

const faultsOf = (environment: Record<string, string>): string[] => {
  try {
    loadConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
};

const EXAMPLE = readFileSync('.env.example', 'utf8');
/** The lines that set a variable, those that are commented out among them. */
const EXAMPLE_LINES = [...EXAMPLE.matchAll(/^(?:# )?([A-Z_]+)=(.*)$/gm)];

test('.env.example lists exactly the variables that there are', () => {
  expect(EXAMPLE_LINES.map(([, name]) => name).toSorted()).toEqual(Object.keys(VARIABLES).toSorted());
});

test('.env.example shows the defaults, and examples that are valid', () => {
  expect(loadConfig(parseEnv(EXAMPLE) as Record<string, string>)).toEqual(loadConfig({}));
  expect(
    faultsOf(
      Object.fromEntries(EXAMPLE_LINES.map(([, name, value]) => [name, value])) as Record<string, string>,
    ),
  ).toEqual([]);
});

test.each([
  ['HOST', '0.0.0.0', (config: Config) => config.http.host, '0.0.0.0'],
  ['PORT', '8080', (config: Config) => config.http.port, 8080],
  ['BASE_URL', 'https://a.example/', (config: Config) => config.http.baseUrl, 'https://a.example'],
  ['BODY_LIMIT', '100kb', (config: Config) => config.http.bodyLimit, 102_400],
  ['TRUST_PROXY', '2', (config: Config) => config.http.trustProxy, 2],
  [
    'TRUST_PROXY',
    'loopback, 10.0.0.0/8',
    (config: Config) => config.http.trustProxy,
    ['loopback', '10.0.0.0/8'],
  ],
  [
    'CORS_ORIGINS',
    'https://a.example,http://b.example:81',
    (config: Config) => config.http.corsOrigins,
    ['https://a.example', 'http://b.example:81'],
  ],
  ['DATABASE_URL', 'postgres://u:p@h/d', (config: Config) => config.database.url, 'postgres://u:p@h/d'],
  ['MIGRATIONS', 'off', (config: Config) => config.database.migrations, 'off'],
  ['METRICS', 'on', (config: Config) => config.operations.metrics, true],
  ['PORT', '', (config: Config) => config.http.port, 3000],
])('%s=%s is read', (name, value, read, expected) => {
  expect(read(loadConfig({ [name]: value }))).toEqual(expected);
});

test.each([
  ['PORT', '65536'],
  ['PORT', '80a'],
  ['BASE_URL', 'plants.example'],
  ['BODY_LIMIT', '1tb'],
  ['BODY_LIMIT', '10'],
  ['TRUST_PROXY', 'true'],
  ['TRUST_PROXY', '10.0.0.0/99'],
  ['CORS_ORIGINS', 'https://a.example/path'],
  ['CORS_ORIGINS', '*'],
  ['KEEP_ALIVE_TIMEOUT_MS', '-1'],
  ['DATABASE_URL', 'mysql://u:hunter2@h/d'],
  ['MIGRATIONS', 'on'],
  ['DATABASE_POOL_SIZE', '1'],
  ['DATABASE_TIMEOUT_MS', '1.5'],
  ['ACCESS_TOKENS', 'sha256:abc'],
  ['ACCESS_TOKENS', 'hunter2,with space'],
  ['ACCESS_TOKENS', ' , '],
  ['JWT_JWKS_URL', 'issuer.example/keys'],
  ['LOG_LEVEL', 'verbose'],
  ['METRICS', 'yes'],
  ['SHUTDOWN_DELAY_MS', 'soon'],
  ['SHUTDOWN_TIMEOUT_MS', 'never'],
])('%s=%s is a fault that names the variable and not its value', (name, value) => {
  const faults = faultsOf({ [name]: value });
  expect(faults[0]).toMatch(new RegExp(`^${name} `));
  expect(faults.join()).not.toContain('hunter2');
});

test('all faults are told together', () => {
  const faults = faultsOf({ PORT: 'x', LOG_LEVEL: 'x', JWT_ISSUER: 'x', NODE_ENV: 'production' });
  expect(faults.map((fault) => fault.split(' ')[0])).toEqual([
    'PORT',
    'LOG_LEVEL',
    'JWT_JWKS_URL',
    'JWT_AUDIENCE',
    'DATABASE_URL',
  ]);
});

test('production asks who may call and where plants are stored', () => {
  expect(faultsOf({ NODE_ENV: 'production' }).map((fault) => fault.split(' ')[0])).toEqual([
    'ACCESS_TOKENS',
    'DATABASE_URL',
  ]);
  expect(faultsOf({ NODE_ENV: 'production', ACCESS_TOKENS: 'a', DATA_DIR: '/data' })).toEqual([]);
});

test('tokens are kept as digests', () => {
  const digest = createHash('sha256').update('secret-a').digest();
  const { tokenDigests } = loadConfig({ ACCESS_TOKENS: `secret-a, sha256:${digest.toString('hex')}` }).auth;
  expect(tokenDigests).toEqual([digest, digest]);
});
