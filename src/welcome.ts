import type { Config } from './config/config.js';

/**
 * @param port the port that the service listens on.
 * @param token the one-time token, if none is configured.
 * @returns what a person reads who starts the service to try it.
 */
export function welcome({ host, baseUrl, docs }: Config['http'], port: number, token?: string): string {
  const name = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  const base = baseUrl ?? `http://${name}:${port}`;
  const lines = ['', `Plant Store listens on ${base}`];
  if (docs) lines.push(`Swagger UI: ${base}/docs`);
  if (token !== undefined) {
    lines.push(
      '',
      'No token is configured, so here is one that lasts until the service stops:',
      `  ${token}`,
      'Create a plant with it:',
      `  curl -X POST ${base}/plants -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"id":1,"name":"Monstera","tag":"indoor"}'`,
    );
  }
  return `${lines.join('\n')}\n\n`;
}
