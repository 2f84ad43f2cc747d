const { SwaggerUIBundle } = /** @type {any} */ (globalThis);

SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: '../openapi.json',
  validatorUrl: null,
  deepLinking: true,
  docExpansion: 'list',
  displayRequestDuration: true,
  tryItOutEnabled: true,
});
