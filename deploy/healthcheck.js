// For a container's health check, where there is no curl: `node healthcheck.js live` or `ready`.
const { PORT = '3000' } = process.env;

try {
  const url = `http://127.0.0.1:${PORT}/health/${process.argv[2]}`;
  process.exit((await fetch(url)).ok ? 0 : 1);
} catch {
  process.exit(1);
}
