import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { launchBrowser } from './browser.js';
import { exchange } from '../support/requests.js';
import { needs } from '../support/requirements.js';
import { rowOf, startService, TOKEN, unusedId, type TestService } from '../support/service.js';

interface Seen {
  status?: number;
  text?: string;
  requestId?: string | null;
  blocked?: true;
}

needs('chromium')('A page of another origin', () => {
  let browser: Browser;
  let pages: Server;
  let origin: (host: string) => string;
  let open: TestService;
  let closed: TestService;
  beforeAll(async () => {
    pages = createServer((_, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end('<!doctype html><title>Another site</title>');
    });
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
    const { port } = pages.address() as AddressInfo;
    origin = (host) => `http://${host}.example:${port}`;
    [browser, open, closed] = await Promise.all([
      launchBrowser(),
      startService({ env: { CORS_ORIGINS: `https://elsewhere.example,${origin('allowed')}` } }),
      startService(),
    ]);
  });
  afterAll(async () => {
    pages.close();
    await browser.close();
    await Promise.all([open.stop(), closed.stop()]);
  });

  /** Creates a plant from a page of the host. @returns what its script sees of the answer. */
  async function createFrom(host: string, service: TestService, body: string, token = TOKEN): Promise<Seen> {
    const page = await browser.newPage();
    await page.goto(origin(host));
    const call = JSON.stringify({
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body,
    });
    const seen = await page.evaluate<Seen>(
      `fetch('${service.url}/plants', ${call}).then(
        async (response) => ({
          status: response.status,
          text: await response.text(),
          requestId: response.headers.get('X-Request-Id'),
        }),
        () => ({ blocked: true }),
      )`,
    );
    await page.close();
    return seen;
  }

  test('creates a plant if its origin is listed, and can read the answer and the request id', async () => {
    const id = unusedId();
    const seen = await createFrom('allowed', open, `{"id":${id},"name":"a"}`);
    expect(seen).toEqual({ status: 200, text: '{"name":"a"}', requestId: expect.any(String) as string });
    expect(await rowOf(open, id)).toMatchObject({ name: 'a' });
  });

  test.each([
    ['a bad body', '{"id":"1","name":"a"}', TOKEN, 400],
    ['a bad token', '{"id":1,"name":"a"}', 'other', 401],
  ])('can read why its request is refused: %s', async (_, body, token, status) => {
    const seen = await createFrom('allowed', open, body, token);
    expect(seen).toMatchObject({ status, text: expect.stringContaining('"message"') as string });
  });

  test.each([
    ['its origin is not listed', 'other', () => open],
    ['no origin is listed', 'allowed', () => closed],
  ])('creates nothing if %s', async (_, host, service) => {
    const id = unusedId();
    expect(await createFrom(host, service(), `{"id":${id},"name":"a"}`)).toEqual({ blocked: true });
    expect(await rowOf(service(), id)).toBeUndefined();
  });

  test('gets an answer to its preflight request without a token', async () => {
    const preflight = (service: TestService, from: string) =>
      exchange(service.port, [
        `OPTIONS /plants HTTP/1.1\r\nHost: a\r\nOrigin: ${from}\r\nAccess-Control-Request-Method: POST\r\n` +
          'Access-Control-Request-Headers: authorization,content-type\r\nConnection: close\r\n\r\n',
      ]);
    const allowed = await preflight(open, origin('allowed'));
    expect([allowed.status, allowed.headers]).toMatchObject([
      204,
      {
        'access-control-allow-origin': origin('allowed'),
        'access-control-allow-methods': 'POST',
        'access-control-allow-headers':
          'Authorization,Content-Type,Content-Encoding,X-Request-Id,traceparent,tracestate,baggage',
        vary: 'Origin',
      },
    ]);
    const answers = [await preflight(open, origin('other')), await preflight(closed, origin('allowed'))];
    for (const { headers } of answers) expect(headers).not.toHaveProperty('access-control-allow-origin');
  });
});
