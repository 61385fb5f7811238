// Makes a passkey, or uses one, and sends what the browser says about it.
const form = document.querySelector("form[data-options]");
const trouble = document.getElementById("trouble");
const { options, ceremony } = form.dataset;

async function turnToDevice() {
  const parsed = JSON.parse(options);
  if (ceremony === "keep") {
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(parsed) });
  }
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(parsed) });
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  trouble.hidden = true;
  try {
    const made = await turnToDevice();
    form.elements.passkey.value = JSON.stringify(made.toJSON());
    form.submit();
  } catch {
    trouble.hidden = false;
  }
});
form.hidden = false;
