// A container's health check: `node healthcheck.js live` or `ready`. The image has no curl. It reads the environment as
// the service does, to ask where that listens.
import { request } from 'node:http';
import { loadEnvFile } from 'node:process';

try {
  loadEnvFile('.env');
} catch {
  // The file is optional.
}
const setting = (name, otherwise) => process.env[name]?.trim() || otherwise;

const host = setting('HOST', '127.0.0.1');
const loopback = { '0.0.0.0': '127.0.0.1', '::': '::1' };
request({
  host: loopback[host] ?? host,
  port: setting('METRICS_PORT', setting('PORT', '3000')),
  path: `/health/${process.argv[2]}`,
})
  .on('response', ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1))
  .on('error', () => process.exit(1))
  .end();
