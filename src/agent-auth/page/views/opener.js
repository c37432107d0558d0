const { message, origin } = document.getElementById('answer').dataset;
if (window.opener) {
  window.opener.postMessage(JSON.parse(message), origin);
  window.close();
}
