import { EXAMPLES, withExamples } from './examples.js';

/** Swagger UI's page, at `docs` below the service's base URL. */
export const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>OpenAPI Plant Store</title>
    <link rel="icon" type="image/svg+xml" href="docs/icon.svg" />
    <link rel="stylesheet" href="docs/swagger-ui.css" />
    <link rel="stylesheet" href="docs/style.css" />
  </head>
  <body>
    <main id="swagger-ui"></main>
    <noscript>This page needs JavaScript. The interface is described in <a href="openapi.json">openapi.json</a>.</noscript>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/initializer.js"></script>
  </body>
</html>
`;

export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
  <path fill="#2f7d4f" d="M28 3C14 3 5 9 5 19c0 2 .5 4 1.3 5.5C9 17 14 12 21 9.5 14 14 9.5 19.5 7 28.5l3 .5c.5-2 1.1-3.700 1.900-5.300 1.3.5 2.700.8 4.100.8C26 24.5 29 14 28 3z"/>
</svg>
`;

export const INITIALIZER = `
// The page is at <base>/docs, whichever gateway, host name or path prefix leads to it.
const base = new URL('.', location.href).href.replace(/\\/$/, '');

const HOW_TO = \`
## Create a plant from this page
1. Get a bearer token from whoever runs this service. A service that was started without one prints a token at its start.
2. Press **Authorize** and paste the token.
3. Press **Execute** below. Pressing it again is safe: the same plant is stored once.

For gateways, clients and tests: [openapi.json](openapi.json)\`;

const examples = ${JSON.stringify(EXAMPLES)};
// An id that is probably free, so that the example works unchanged.
examples.createPlant.request.id = Date.now();

${withExamples.toString()}

/** Changes this page's own copy of the document; openapi.json stays the contract. */
function forReaders(document) {
  const spec = withExamples(document, examples);
  spec.servers = [{ url: base }];
  spec.info.description += HOW_TO;
  return spec;
}

fetch('openapi.json')
  .then((response) => response.json())
  .then((spec) =>
    SwaggerUIBundle({
      spec: forReaders(spec),
      dom_id: '#swagger-ui',
      deepLinking: false,
      docExpansion: 'full',
      tryItOutEnabled: true,
      displayRequestDuration: true,
      defaultModelsExpandDepth: 0,
      validatorUrl: null,
    }),
  )
  .catch(() => {
    document.getElementById('swagger-ui').textContent = 'The service cannot be reached. Reload the page to try again.';
  });
`;

export const STYLE = `
:root { --leaf: #2f7d4f; }
body { margin: 0; border-top: 6px solid var(--leaf); background: #fafafa; }
main, noscript { display: block; max-width: 1000px; margin: 0 auto; font: 14px/1.6 sans-serif; }

.swagger-ui .information-container .info { margin: 32px 0 24px; }
.swagger-ui .info h2 { margin: 24px 0 8px; font-size: 18px; }
.swagger-ui .info ol { padding-left: 20px; }
.swagger-ui .info__license::before { content: 'License: '; }
.swagger-ui .scheme-container { padding: 0 0 16px; background: none; box-shadow: none; }
.swagger-ui .btn.authorize, .swagger-ui .btn.authorize svg { border-color: var(--leaf); color: var(--leaf); }
.swagger-ui .btn.execute { border-color: var(--leaf); background: var(--leaf); }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: var(--leaf); }
.swagger-ui .opblock-section + .execute-wrapper { padding-top: 0; }
.swagger-ui .body-param__text { min-height: 7em; field-sizing: content; }
.swagger-ui :focus-visible { outline: 3px solid var(--leaf); outline-offset: 2px; }

/* Hides empty parts: there are no tags, parameters or links and only one media type. */
.swagger-ui .opblock-tag, .swagger-ui .body-param-content-type,
.swagger-ui .opblock-section:not(.opblock-section-request-body, :has(table.parameters)) > .opblock-section-header:first-child,
.swagger-ui .parameters-container:not(:has(table.parameters)),
.swagger-ui .response-controls, .swagger-ui .response-col_links { display: none; }

/* On a phone, long words break instead of widening the page. */
.swagger-ui table.responses-table { table-layout: fixed; }
.swagger-ui .response-col_status { width: 3.5em; }
.swagger-ui td { overflow-wrap: anywhere; }
.swagger-ui td.header-col:last-child { white-space: nowrap; }
.swagger-ui .highlight-code > .microlight code { word-break: normal; }
`;
