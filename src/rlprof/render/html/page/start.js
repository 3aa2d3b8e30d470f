// The scripts above only define functions. The page starts here.

const page = reportPage();
page.draw(JSON.parse(document.getElementById("data").textContent));
page.enliven();
