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
/** The lines that set a variable, even if they are commented out. */
const EXAMPLE_LINES = [...EXAMPLE.matchAll(/^(?:# )?([A-Z_]+)=(.*)$/gm)];

test('.env.example lists exactly the variables of the service', () => {
  expect(EXAMPLE_LINES.map(([, name]) => name).toSorted()).toEqual(Object.keys(VARIABLES).toSorted());
});

test('.env.example has the defaults, and valid examples', () => {
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
  ['BASE_URL', 'http://[::1]:8080/a/b', (config: Config) => config.http.baseUrl, 'http://[::1]:8080/a/b'],
  ['HOST', '::1', (config: Config) => config.http.host, '::1'],
  ['HOST', 'fe80::1%eth0', (config: Config) => config.http.host, 'fe80::1%eth0'],
  ['HOST', 'plants_1.internal.', (config: Config) => config.http.host, 'plants_1.internal.'],
  ['NODE_ENV', 'test', (config: Config) => config.production, false],
  ['DOCS', 'off', (config: Config) => config.http.docs, false],
  ['METRICS_PORT', '9464', (config: Config) => config.operations.metricsPort, 9464],
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
  ['PORT', ' \n', (config: Config) => config.http.port, 3000],
  [
    'DATABASE_URL',
    'postgres://u:%25%40%2F@[::1]:5432/d?sslmode=require',
    (config: Config) => config.database.url,
    'postgres://u:%25%40%2F@[::1]:5432/d?sslmode=require',
  ],
])('Reads %s=%s', (name, value, read, expected) => {
  expect(read(loadConfig({ [name]: value }))).toEqual(expected);
});

test.each([
  ['PORT', '65536'],
  ['PORT', '80a'],
  ['NODE_ENV', 'prod'],
  ['NODE_ENV', 'Production'],
  ['HOST', '[::1]'],
  ['HOST', 'localhost:3000'],
  ['HOST', 'http://localhost'],
  ['HOST', '-'],
  ['BASE_URL', 'plants.example'],
  ['BASE_URL', 'https://plants.example/"hunter2'],
  ['BASE_URL', "https://plants.example/'"],
  ['BASE_URL', 'https://plants.example/<script>'],
  ['BASE_URL', 'https://plants.example/\\'],
  ['BASE_URL', 'https://plants.example/?a=b'],
  ['BASE_URL', 'https://u:hunter2@plants.example'],
  ['BODY_LIMIT', '1tb'],
  ['BODY_LIMIT', '10'],
  ['TRUST_PROXY', 'true'],
  ['TRUST_PROXY', '1'],
  ['TRUST_PROXY', '10.0.0.0/99'],
  ['CORS_ORIGINS', 'https://a.example/path'],
  ['CORS_ORIGINS', '*'],
  ['KEEP_ALIVE_TIMEOUT_MS', '-1'],
  ['DATABASE_URL', 'mysql://u:hunter2@h/d'],
  ['DATABASE_URL', 'postgres://u:hunter2%@h/d'],
  ['DATABASE_URL', 'postgres://u:hunter2%zz@h/d'],
  ['DATABASE_URL', 'postgres://u:hunter2%ff@h/d'],
  ['DATABASE_URL', 'postgres://u:hunter2@h:x/d'],
  ['DATABASE_URL', 'postgres://u:hunter2@h/d?port=x'],
  ['DATABASE_URL', 'postgres://u:hunter2@h/d?sslrootcert=/hunter2'],
  ['DATABASE_URL', 'postgres://u:hunter2@h/d?target_session_attrs=standby'],
  ['DATA_DIR', './da\nta'],
  ['MIGRATIONS', 'on'],
  ['DATABASE_POOL_SIZE', '1'],
  ['DATABASE_TIMEOUT_MS', '1.5'],
  ['ACCESS_TOKENS', 'sha256:abc'],
  ['ACCESS_TOKENS', 'hunter2,with space'],
  ['ACCESS_TOKENS', ' , '],
  ['JWT_JWKS_URL', 'issuer.example/keys'],
  ['JWT_JWKS_URL', 'https://u:hunter2@issuer.example/keys'],
  ['JWT_JWKS_URL', 'https://hunter2@issuer.example/keys'],
  ['JWT_ISSUER', 'https://issuer.example\nhttps://other.example'],
  ['JWT_AUDIENCE', 'plants\tstore'],
  ['JWT_SCOPE', 'plants:create'],
  ['JWT_SCOPE', '"plants:create"'],
  ['DOCS', 'no'],
  ['METRICS_PORT', '3000'],
  ['LOG_LEVEL', 'verbose'],
  ['METRICS', 'yes'],
  ['SHUTDOWN_DELAY_MS', 'soon'],
  ['SHUTDOWN_TIMEOUT_MS', 'never'],
])('Refuses %s=%s with a fault that names the variable and not its value', (name, value) => {
  const faults = faultsOf({ [name]: value });
  expect(faults[0]).toMatch(new RegExp(`^${name} `));
  expect(faults.join()).not.toContain('hunter2');
});

test.each([
  ['PORT', '0', '65535', '-1', '65536'],
  ['BODY_LIMIT', '1kb', '64mb', '1023', '65mb'],
  ['MAX_CONNECTIONS', '1', '1000000', '0', '1000001'],
  ['KEEP_ALIVE_TIMEOUT_MS', '1000', '3600000', '999', '3600001'],
  ['DATABASE_POOL_SIZE', '2', '1000', '1', '1001'],
  ['DATABASE_TIMEOUT_MS', '100', '600000', '99', '600001'],
  ['METRICS_PORT', '0', '65535', '-1', '65536'],
  ['SHUTDOWN_DELAY_MS', '0', '600000', '-1', '600001'],
  ['SHUTDOWN_TIMEOUT_MS', '0', '600000', '-1', '600001'],
])('%s is from %s to %s', (name, smallest, largest, tooSmall, tooLarge) => {
  for (const value of [smallest, largest]) expect(faultsOf({ [name]: value })).toEqual([]);
  for (const value of [tooSmall, tooLarge]) expect(faultsOf({ [name]: value })[0]).toMatch(`${name} must be`);
});

test('BODY_BUDGET is from BODY_LIMIT to 4 GiB', () => {
  expect(faultsOf({ BODY_BUDGET: '1mb' })).toEqual([]);
  expect(faultsOf({ BODY_BUDGET: '4gb' })).toEqual([]);
  expect(faultsOf({ BODY_BUDGET: '1023kb' })).toEqual(['BODY_BUDGET must not be smaller than BODY_LIMIT']);
  expect(faultsOf({ BODY_BUDGET: '5gb' })[0]).toMatch('BODY_BUDGET must be');
});

test('Reports all faults together', () => {
  const faults = faultsOf({ PORT: 'x', LOG_LEVEL: 'x', JWT_ISSUER: 'x', NODE_ENV: 'production' });
  expect(faults.map((fault) => fault.split(' ')[0])).toEqual([
    'PORT',
    'LOG_LEVEL',
    'JWT_JWKS_URL',
    'JWT_AUDIENCE',
    'DATABASE_URL',
  ]);
});

test('Production needs to know who may call and where plants are stored', () => {
  expect(faultsOf({ NODE_ENV: 'production' }).map((fault) => fault.split(' ')[0])).toEqual([
    'ACCESS_TOKENS',
    'DATABASE_URL',
  ]);
  expect(faultsOf({ NODE_ENV: 'production', ACCESS_TOKENS: 'a', DATA_DIR: '/data' })).toEqual([]);
});

test.each([
  ['NODE_ENV', 'production\n', (config: Config) => config.production, true],
  ['HOST', ' ::1\r\n', (config: Config) => config.http.host, '::1'],
  ['JWT_ISSUER', 'https://i.example\n', (config: Config) => config.auth.jwt?.issuer, 'https://i.example'],
  ['JWT_AUDIENCE', '\ufeffplants\n', (config: Config) => config.auth.jwt?.audience, 'plants'],
  ['JWT_SCOPE', 'a  b\n', (config: Config) => config.auth.jwt?.scope, ['a', 'b']],
])('Ignores white space around %s', (name, value, read, expected) => {
  const jwt = { JWT_JWKS_URL: 'https://i.example/keys', JWT_ISSUER: 'i', JWT_AUDIENCE: 'a' };
  expect(read(loadConfig({ DATA_DIR: 'd', ...jwt, [name]: value }))).toEqual(expected);
});

test.each([
  ['http://issuer.example/keys', false],
  ['http://10.0.0.1/keys', false],
  ['http://127.example/keys', false],
  ['http://localhost.example/keys', false],
  ['http://localhost:8080/keys', true],
  ['http://127.0.0.1:8080/keys', true],
  ['http://[::1]:8080/keys', true],
  ['https://issuer.example/keys', true],
])('Keys from %s are allowed in production: %s', (url, isAllowed) => {
  const jwt = { JWT_JWKS_URL: url, JWT_ISSUER: 'i', JWT_AUDIENCE: 'a' };
  const faults = faultsOf({ NODE_ENV: 'production', DATA_DIR: 'd', ...jwt });
  expect(faults.map((fault) => fault.split(' ')[0])).toEqual(isAllowed ? [] : ['JWT_JWKS_URL']);
  expect(faultsOf(jwt)).toEqual([]);
});

test('A copy of .env.example for production still needs both', () => {
  const copied = parseEnv(EXAMPLE.replace('NODE_ENV=development', 'NODE_ENV=production'));
  expect(faultsOf(copied as Record<string, string>).map((fault) => fault.split(' ')[0])).toEqual([
    'ACCESS_TOKENS',
    'DATABASE_URL',
  ]);
});

test('The digest in .env.example belongs to no known token', () => {
  expect(EXAMPLE).toMatch(/^# ACCESS_TOKENS=sha256:0{64}$/m);
});

test('Keeps tokens as digests', () => {
  const digest = createHash('sha256').update('secret-a').digest();
  const { tokenDigests } = loadConfig({ ACCESS_TOKENS: `secret-a, sha256:${digest.toString('hex')}` }).auth;
  expect(tokenDigests).toEqual([digest, digest]);
});
