const darkMode = window.matchMedia('(prefers-color-scheme: dark)');
const followDarkMode = () => document.documentElement.classList.toggle('dark-mode', darkMode.matches);
followDarkMode();
darkMode.addEventListener('change', followDarkMode);
window.SwaggerUIBundle({ url: '/openapi.json', dom_id: '#document', deepLinking: true, validatorUrl: null });
