window.SwaggerUIBundle({ url: '/openapi.json', dom_id: '#document', deepLinking: true, validatorUrl: null });
