import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Express, Request, Response } from 'express';
import helmet from 'helmet';
import { dump } from 'js-yaml';
// Not the package itself, which would load the page's scripts into this process: 35 MB and 0.1 s of the start.
import assetsFolder from 'swagger-ui-dist/absolute-path.js';
import { ICON, INITIALIZER, PAGE, STYLE } from './docs-page.js';

/** The assets' addresses carry no version, so a browser asks each time whether what it has is still right. */
const CACHE_CONTROL = 'no-cache';

/** Swagger UI from this service alone: no inline script, no eval, nothing from another host, and no upgrade to https. */
const pagePolicy = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  strictTransportSecurity: false,
  originAgentCluster: false,
  crossOriginOpenerPolicy: false,
});

/**
 * Serves the document as JSON and YAML, and Swagger UI. Every address in the page is relative to it, so the page works
 * at any host and behind any path prefix.
 */
export function serveDocs(app: Express, document: OpenAPIObject): void {
  app.get(
    '/openapi.json',
    send('application/json', () => JSON.stringify(document, null, 2)),
  );
  app.get(
    '/openapi.yaml',
    send('application/yaml', () => dump(document)),
  );

  const asset = (name: string) => () => readFileSync(join(assetsFolder(), name));
  app.get(
    '/docs',
    pagePolicy,
    send('text/html; charset=utf-8', () => PAGE),
  );
  app.get(
    '/docs/initializer.js',
    send('text/javascript; charset=utf-8', () => INITIALIZER),
  );
  app.get(
    '/docs/style.css',
    send('text/css; charset=utf-8', () => STYLE),
  );
  app.get(
    '/docs/swagger-ui-bundle.js',
    send('text/javascript; charset=utf-8', asset('swagger-ui-bundle.js')),
  );
  app.get('/docs/swagger-ui.css', send('text/css; charset=utf-8', asset('swagger-ui.css')));
  app.get(
    '/docs/icon.svg',
    send('image/svg+xml; charset=utf-8', () => ICON),
  );

  // Relative, since a gateway may have put a prefix before the path.
  app.get('/', redirect('docs'));
  app.get('/docs/', redirect('../docs'));
}

/** @param make called once, at the first request: a service that nobody asks starts sooner, and is smaller. */
function send(type: string, make: () => string | Buffer) {
  let made: { bytes: Buffer; etag: string } | undefined;
  return (_request: Request, response: Response): void => {
    made ??= taggedBytes(make());
    response.setHeader('Content-Type', type);
    response.setHeader('Cache-Control', CACHE_CONTROL);
    response.setHeader('ETag', made.etag);
    // Express would add a charset to the media type of a string, and JSON's has no such parameter (RFC 8259 section 11).
    response.send(made.bytes);
  };
}

function taggedBytes(content: string | Buffer): { bytes: Buffer; etag: string } {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
}

function redirect(location: string) {
  return (_request: Request, response: Response): void => {
    response.writeHead(308, { Location: location }).end();
  };
}
