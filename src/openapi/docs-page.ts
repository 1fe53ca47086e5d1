/** The page of Swagger UI, at `docs` below whatever the service is reached by. */
export const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>OpenAPI Plant Store</title>
    <link rel="icon" type="image/png" href="docs/favicon.png" />
    <link rel="stylesheet" href="docs/swagger-ui.css" />
    <link rel="stylesheet" href="docs/style.css" />
  </head>
  <body>
    <aside class="how-to">
      <h2>Create a plant from this page</h2>
      <ol>
        <li>
          Get a bearer token from whoever runs this service. A service that was started without one prints a token at
          its start.
        </li>
        <li>Press <strong>Authorize</strong> and paste the token.</li>
        <li>Press <strong>Execute</strong> below. Pressing it again is safe: the same plant is stored once.</li>
      </ol>
    </aside>
    <div id="swagger-ui"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/initializer.js"></script>
  </body>
</html>
`;

export const INITIALIZER = `
// The page is at <base>/docs, whatever gateway, host name or path prefix it was opened by.
const base = new URL('.', location.href).href.replace(/\\/$/, '');

fetch('openapi.json')
  .then((response) => response.json())
  .then((spec) => {
    spec.servers = [{ url: base, description: 'This service' }];
    SwaggerUIBundle({
      spec,
      dom_id: '#swagger-ui',
      deepLinking: false,
      docExpansion: 'full',
      tryItOutEnabled: true,
      persistAuthorization: true,
      displayRequestDuration: true,
      defaultModelsExpandDepth: 0,
      validatorUrl: null,
    });
  });
`;

export const STYLE = `
body { margin: 0; background: #fafafa; }
.how-to {
  max-width: 1420px; margin: 0 auto; padding: 20px 20px 0; box-sizing: border-box;
  font: 14px/1.6 sans-serif; color: #3b4151;
}
.how-to h2 { font-size: 18px; margin: 0 0 8px; }
.how-to ol { margin: 0; padding-left: 20px; }
.how-to li { margin-bottom: 2px; }
`;
