import { render } from 'preact';
import { App } from './app.js';
import { html } from './parts/html.js';

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);
