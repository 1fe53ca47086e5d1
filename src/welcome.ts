/**
 * What a person sees who started the service to try it.
 *
 * @param token the one-time token, where none is configured.
 */
export function welcome({
  host,
  port,
  token,
}: {
  host: string;
  port: number;
  token?: string | undefined;
}): string {
  const base = `http://${['0.0.0.0', '::'].includes(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`;
  const lines = ['', `Plant Store listens on ${base}`, `Swagger UI: ${base}/docs`];
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
